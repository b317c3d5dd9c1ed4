"""What each document needs around its commands: what is there, what happens meanwhile, what is not run."""
import re
import shutil
import threading
import time

from world import dead_letter, member

BROKER_CONF = '''# RocketMQ's
brokerClusterName=DefaultCluster
brokerName=broker-a
brokerId=0
namesrvAddr=192.0.2.10:9876
storePathRootDir=/data/rocketmq/store
fileReservedTime=48
deleteWhen=04
brokerRole=ASYNC_MASTER
flushDiskType=SYNC_FLUSH
sendMessageThreadPoolNums=16
'''


def shop(world):
    """Topics, groups and messages that the documents speak of. Gives the broker's address."""
    address = world.must('rmqctl cluster').splitlines()[1].split()[3]
    for command in ('topic create Orders --queues 8', 'topic create Invoices --queues 4',
                    'group create billing', 'group create shipping'):
        world.must('rmqctl ' + command)
    world.must('rmqctl send Orders order --count 30')
    world.must('rmqctl send Orders "one more" --key 4711')
    world.must('rmqctl send Invoices invoice --count 10')
    dead_letter(address, 'billing', 'Orders')
    world.must('rmqctl consume Orders --group billing --count 5')
    world.must('rmqctl consume Invoices --group shipping')
    return address


def configured(world, **keys):
    path = world.root / 'etc/rmqd/rmqd.toml'
    path.write_text(path.read_text() + ''.join(f'{key} = "{value}"\n' for key, value in keys.items()))


class Scenario:
    """A document. `before`: regular expression -> what happens before a command that it matches ("SECTION:
    command"). `status`: exit statuses besides 0. `not_run`, `blocks_not_run`: with reasons."""
    before = {}
    status = {r'rmqctl( -n \S+)? doctor': {1}}
    not_run = {}
    blocks_not_run = {}

    def __init__(self, world):
        self.world = world

    def prepare(self):
        pass


class Readme(Scenario):
    not_run = {
        r'\./dev (run|test)$': 'tests/system/clean-clone runs both in a fresh system',
        r'\./dev deb$': 'the first thing that ./dev system does',
    }
    blocks_not_run = {'java': "the same calls are made by the Java clients of tests/interop"}

    def prepare(self):
        (self.world.home / 'broker.conf').write_text(BROKER_CONF)

    def store(self):
        self.world.stopped_store('/path/to/store')

    before = {r'.*: rmqctl store check': store}


class Migration(Scenario):
    def prepare(self):
        w = self.world
        (w.root / 'opt/rocketmq/conf/broker.conf').write_text(BROKER_CONF)
        (w.root / 'opt/rocketmq/namesrv').mkdir()
        (w.root / 'opt/rocketmq/namesrv/kvConfig.json').write_text(
            '{"configTable":{"ORDER_TOPIC_CONFIG":{"Ledger":"broker-a:4"}}}')
        w.old_name_server()
        self.old_broker()
        shop(w)

    def old_broker(self):
        w = self.world
        if not (w.root / 'run/old-broker.pid').exists():
            w.broker('broker-a', w.root / 'data/rocketmq/store', 'old-broker')

    def new_machine(self):
        self.old_broker()
        shutil.rmtree(self.world.root / 'var/lib/rmqd', ignore_errors=True)
        (self.world.root / 'var/lib/rmqd').mkdir()

    def consumers(self):
        """Go on while the broker is drained, when it has told of them."""
        def consume():
            asked = 'rmqctl broker config brokerPermission --broker broker-a'
            self.world.wait_for(lambda: self.world.run(asked)[1].rstrip().endswith(' 4'), 25)
            time.sleep(1)
            for topic, group in (('Orders', 'billing'), ('Invoices', 'shipping')):
                self.world.run(f'rmqctl consume {topic} --group {group}')
        threading.Thread(target=consume, daemon=True).start()

    before = {
        r'Side by side: apt': new_machine,
        r'Side by side: rmqctl broker drain': consumers,
        r'Back: rmqctl broker config set brokerPermission': old_broker,
    }


class Operations(Scenario):
    def prepare(self):
        configured(self.world, brokerName='broker-a')
        self.world.start('rmq-namesrvd', 'rmqd')
        self.address = shop(self.world)
        self.world.must('rmqctl group create old-report')
        self.member = member(self.address, 'billing', 'Orders')

    def nothing_moved_aside(self):
        shutil.rmtree(self.world.root / 'var/lib/rmqd/store.old', ignore_errors=True)

    def invoices(self):
        self.world.run('rmqctl topic create Invoices')

    def member_again(self):
        self.member = member(self.address, 'billing', 'Orders')

    def damage(self):
        """A byte of the body of a message flips, in the stopped store."""
        w = self.world
        log = next((w.root / 'var/lib/rmqd/store/commitlog').iterdir())
        self.whole = log, log.read_bytes()
        at = self.whole[1].index(b'one more')
        log.write_bytes(self.whole[1][:at] + b'X' + self.whole[1][at + 1:])
        self.status = self.status | {r'rmqctl store (check|dump)': {2}}

    def mended(self):
        log, data = self.whole
        log.write_bytes(data)

    before = {
        r'A disk is replaced: mv': nothing_moved_aside,
        r'Common tasks: rmqctl topic delete Invoices': invoices,
        r'Common tasks: rmqctl group running': member_again,
        r'The log is damaged: rmqctl store check': damage,
        r'The log is damaged: rmqd --check-config': mended,
    }


class Manuals(Scenario):
    blocks_not_run = {
    'yaml': 'promtool checks packaging/examples/prometheus.yml in tests/observe, where it is there'}

    def prepare(self):
        (self.world.home / 'broker.conf').write_text(BROKER_CONF)
        configured(self.world, brokerName='broker-a')
        self.world.start('rmq-namesrvd', 'rmqd')
        shop(self.world)

    def stop(self):
        self.world.must('systemctl stop rmqd')

    def stop_all(self):
        self.world.must('systemctl stop rmqd rmq-namesrvd')

    def no_orders(self):
        self.world.must('rmqctl topic delete Orders --yes')

    before = {
        r'EXAMPLES: rmqctl topic create Orders': no_orders,
        r'EXAMPLES: rmqctl store check': stop,
        r'EXAMPLES: rmqd --standalone': stop_all,
    }


# Document -> what runs it. Documents that show no command need none; the last one is for all manual pages.
SCENARIOS = {'README.md': Readme, 'docs/migration.md': Migration, 'docs/operations.md': Operations}


def scenario_of(path):
    return SCENARIOS.get(path, Manuals if path.startswith('man/') else None)
