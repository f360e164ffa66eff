"""The contract of every storage, as a test suite to inherit from.

    class TestMine(StorageContract):
        @pytest.fixture
        def storage(self, clock):
            return MyStorage(clock=clock)

`clock` is a `FakeClock`. A storage whose clock cannot be injected overrides that fixture with a clock whose `advance`
waits.
"""

from farthing.testing.storage_contract.leases import Closing, LeaseTests
from farthing.testing.storage_contract.opening import OpeningTests, RunTests, SuggestingTests
from farthing.testing.storage_contract.recording import CheckpointTests, Fencing, Recording
from farthing.testing.storage_contract.studies import Histories, Studies


class StorageContract(
    Studies,
    OpeningTests,
    Recording,
    Closing,
    LeaseTests,
    Fencing,
    CheckpointTests,
    Histories,
    RunTests,
    SuggestingTests,
):
    """Inherit from this and define the fixture `storage`."""
