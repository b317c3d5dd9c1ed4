"""Cases of tests/ctl/run about name servers, lists that are watched, producers, and the program mqadmin."""
import json
import os
import subprocess
import tempfile
import time


def add(case, expect, Ran):
    @case
    def mqadmin_program(ctl):
        topic, group = ctl.topic(), ctl.group()
        with tempfile.TemporaryDirectory() as d:
            program = os.path.join(d, 'mqadmin')
            os.symlink(os.path.abspath(ctl.program), program)

            def mqadmin(*args):
                return Ran(args, subprocess.run([program, *args], capture_output=True, text=True, timeout=60,
                                                stdin=subprocess.DEVNULL))
            ns = ('-n', ctl.namesrv)
            for args in (('updateTopic', *ns, '-c', 'DefaultCluster', '-t', topic, '-r', '2', '-w', '2'),
                         ('sendMessage', '-t', topic, '-p', 'x', '-k', 'thekey', *ns),
                         ('queryMsgByKey', *ns, '-t', topic, '-k', 'thekey'),
                         ('updateTopicPerm', *ns, '-t', topic, '-p', '4'), ('topiclist', *ns),
                         ('updateSubGroup', *ns, '-g', group),
                         ('cloneGroupOffset', *ns, '-s', group, '-d', group, '-t', topic, '-o', 'true'),
                         ('skipAccumulatedMessage', *ns, '-g', group, '-t', topic, '-f', 'true'),
                         ('deleteTopic', *ns, '-c', 'DefaultCluster', '-t', topic)):
                ran = mqadmin(*args)
                expect(ran.code == 0, ran)
            expect(topic not in ctl.ok('topic', 'list').out, 'deleted without a question')
            expect('queryMsgByKey' in mqadmin().out, mqadmin())
            expect('topic status' in mqadmin('help', 'topicStatus').out)
            expect(mqadmin('createUser', '-u', 'x').code == 64, mqadmin('createUser', '-u', 'x'))
            expect(mqadmin('noSuchCommand').code == 64, mqadmin('noSuchCommand'))

    @case
    def name_server_configuration(ctl):
        values = {r['key']: r['value'] for r in ctl.ok('namesrv', 'config', '--json').json()}
        expect('listenPort' in values, values)
        ctl.fails(1, 'namesrv', 'config', 'noSuchKey')
        key, old = 'enableTopicList', values['enableTopicList']
        try:
            ctl.ok('namesrv', 'config', 'set', key, 'false')
            expect(ctl.ok('namesrv', 'config', key, '--json').json()[0]['value'] == 'false')
        finally:
            ctl.ok('updateNamesrvConfig', '-k', key, '-v', old)
        ctl.fails(1, 'namesrv', 'config', 'set', 'noSuchKey', '1')

    @case
    def kv_config(ctl):
        space = 'ctl_' + ctl.run_id
        expect(ctl.ok('namesrv', 'kv', 'list', space, '--json').json() == [])
        ctl.ok('namesrv', 'kv', 'set', space, 'k', 'a value')
        ctl.ok('updateKvConfig', '-s', space, '-k', 'l', '-v', '2')
        found = ctl.ok('namesrv', 'kv', 'list', space, '--json').json()
        expect(found == [dict(key='k', value='a value'), dict(key='l', value='2')], found)
        ctl.ok('namesrv', 'kv', 'delete', space, 'k')
        ctl.ok('deleteKvConfig', '-s', space, '-k', 'l')
        expect(ctl.ok('namesrv', 'kv', 'list', space, '--json').json() == [])

    @case
    def write_permission_of_a_broker(ctl):
        topic = ctl.topic(2)
        broker = ctl.ok('cluster', '--json').json()[0]['brokerName']
        ctl.fails(64, 'namesrv', 'wipe-write', broker)  # nobody to ask
        try:
            wiped = ctl.ok('namesrv', 'wipe-write', broker, '--yes', '--json').json()
            expect(wiped[0]['wipeTopicCount'] > 0, wiped)
            expect(ctl.ok('topic', 'route', topic, '--json').json()['queueDatas'][0]['perm'] == 4)
        finally:
            ctl.ok('namesrv', 'add-write', broker)
        expect(ctl.ok('topic', 'route', topic, '--json').json()['queueDatas'][0]['perm'] == 6)

    @case
    def lists_are_watched(ctl):
        topic = ctl.topic(1)
        command = [ctl.program, '-n', ctl.namesrv, 'topic', 'status', topic, '--json', '--watch',
                   '--interval', '200ms']
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            first = json.loads(p.stdout.readline())
            expect(first[0]['messages'] == 0, first)
            ctl.ok('send', topic, 'x')
            end = time.monotonic() + 20
            while json.loads(p.stdout.readline())[0]['messages'] != 1:
                expect(time.monotonic() < end, 'no round showed the message')
        finally:
            p.terminate()
            p.wait(10)
        ctl.fails(64, 'send', topic, 'x', '--watch')  # that is no list
        ctl.fails(64, 'topic', 'list', '--watch', '--interval', 'often')

    @case
    def producers(ctl):
        expect(isinstance(ctl.ok('producer', 'list', '--json').json(), list))
        ctl.ok('producerConnection', '-g', 'nobody', '-t', 'any')
