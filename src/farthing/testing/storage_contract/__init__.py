"""The contract of every storage, as a test suite to inherit from.

    class TestMine(StorageContract):
        @pytest.fixture
        def storage(self, clock):
            return MyStorage(clock=clock)

`clock` is a `FakeClock`. A storage whose clock cannot be injected overrides that fixture with a clock whose `advance`
waits.
"""

from farthing.testing.storage_contract.checkpoints import CheckpointTests
from farthing.testing.storage_contract.closing import Closing
from farthing.testing.storage_contract.fencing import Fencing
from farthing.testing.storage_contract.histories import Histories
from farthing.testing.storage_contract.leases import LeaseTests
from farthing.testing.storage_contract.opening import Opening
from farthing.testing.storage_contract.recording import Recording
from farthing.testing.storage_contract.running import RunTests
from farthing.testing.storage_contract.studies import Studies
from farthing.testing.storage_contract.suggesting import SuggestingTests


class StorageContract(
    Studies,
    Opening,
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
