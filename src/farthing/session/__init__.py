"""Whose a study is: its record in a storage, its leases, prices, strategy and files, as one program holds them."""

from farthing.session.session import HasSession, Session, session_if_any, session_of

__all__ = ["HasSession", "Session", "session_if_any", "session_of"]
