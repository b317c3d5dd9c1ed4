"""Cases of tests/ctl/run: mqadmin's commands are all known, and the verbs that do the less common ones."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent


def add(case, expect, Ran):
    def mqadmin(ctl, *args):
        """rmqctl by the name mqadmin, as the package has it."""
        with tempfile.TemporaryDirectory() as d:
            program = os.path.join(d, 'mqadmin')
            os.symlink(os.path.abspath(ctl.program), program)
            done = subprocess.run([program, *args], capture_output=True, text=True, timeout=60,
                                  stdin=subprocess.DEVNULL, env={**os.environ, 'NAMESRV_ADDR': ctl.namesrv})
            return Ran(args, done)

    def rows_by(rows, *members):
        return {tuple(r[m] for m in members): r for r in rows}

    @case
    def every_command_of_mqadmin(ctl):
        """Those of its own help and of docs/mqadmin.md: done with all options, or refused with a reason."""
        lines = (here / 'mqadmin-5.5.0.txt').read_text().splitlines()
        options = {line.split()[0]: line.split()[1:] for line in lines if not line.startswith('#')}
        documented = re.findall(r'^\| `(\w+)` \|', (here.parents[1] / 'docs/mqadmin.md').read_text(), re.M)
        expect(sorted(options) == sorted(documented), set(options) ^ set(documented))
        refused = []
        for command, names in options.items():
            help_text = mqadmin(ctl, 'help', command)
            expect(help_text.code == 0, help_text)
            if 'is not done' in help_text.out:
                ran = mqadmin(ctl, command, *[n.rstrip('=') for n in names])
                expect(ran.code == 64 and f'{command} is not done: ' in ran.err and len(ran.err) > 60, ran)
                refused.append(command)
                continue
            for name in names:
                value = ' VALUE' if name.endswith('=') else ''
                pattern = rf'^  {re.escape(name.rstrip("="))}(, --\w+)?{value} '
                expect(re.search(pattern, help_text.out, re.M), command, name, 'in', help_text.out)
        expect(len(options) - len(refused) >= 56, refused)

    @case
    def mqadmin_lines(ctl):
        """Command lines as scripts have them, in the order of one."""
        topic, group, other = ctl.topic(), ctl.group(), ctl.group()
        broker = ctl.ok('cluster', '--json').json()[0]
        b, name, c = broker['brokerAddr'], broker['brokerName'], broker['cluster']
        now = str(int(time.time() * 1000))
        with tempfile.TemporaryDirectory() as d:
            topics = pathlib.Path(d, 'topics.json')
            topics.write_text(json.dumps([dict(topicName=topic, readQueueNums=3, writeQueueNums=3)]))
            groups = pathlib.Path(d, 'groups.json')
            groups.write_text(json.dumps([dict(groupName=other, retryMaxTimes=7)]))
            for line in (
                    f'updateTopic -c {c} -t {topic} -r 2 -w 2 -p 6 -o false -u false -s false',
                    f'updateTopicList -b {b} -f {topics}', f'updateTopicPerm -b {b} -t {topic} -p 6',
                    f'updateSubGroup -b {b} -g {group} -s true -m true -d true -o false -q 1 -r 5 -i 0 -w 1',
                    f'updateSubGroupList -c {c} -f {groups}', f'getConsumerConfig -g {group}',
                    f'sendMessage -t {topic} -p one -k key1 -c TagA -b {name} -i 0 -m false',
                    f'sendMessage -t {topic} -p two -k key2 -c TagB',
                    f'topicRoute -t {topic} -l', f'topicStatus -t {topic}', f'topicClusterList -t {topic}',
                    'topicList', 'topicList -c', f'allocateMQ -t {topic} -i 10.0.0.1,10.0.0.2',
                    f'updateOrderConf -t {topic} -m put -v {name}:2', f'updateOrderConf -t {topic} -m get',
                    f'updateOrderConf -t {topic} -m delete',
                    f'setConsumeMode -b {b} -t {topic} -g {group} -m PULL -q 0',
                    f'queryMsgByKey -t {topic} -k key1 -b 0 -e {int(now) + 3_600_000} -m 5',
                    f'queryMsgByOffset -t {topic} -b {name} -i 0 -o 0',
                    f'printMsg -t {topic} -s TagA -b 0 -e {int(now) + 3_600_000} -d true -c UTF-8',
                    f'printMsgByQueue -t {topic} -a {name} -i 0 -p true -d true -f true',
                    f'consumeMessage -t {topic} -b {name} -i 0 -o 0 -c 1',
                    f'cloneGroupOffset -s {group} -d {other} -t {topic} -o true',
                    f'resetOffsetByTime -g {group} -t {topic} -s {now} -f true',
                    f'resetOffsetByTime -g {group} -t {topic} -s now -b {b} -q 0 -o 0',
                    f'skipAccumulatedMessage -g {group} -t {topic} -f true',
                    f'consumerProgress -g {group} -s true',
                    f'checkMsgSendRT -t {topic} -a 3 -s 64', f'sendMsgStatus -b {name} -s 64 -c 3',
                    f'queryCq -t {topic} -q 0 -i 0 -c 2 -b {b} -g {group}', 'clusterList', 'clusterList -m',
                    f'brokerStatus -b {b}', f'brokerConsumeStats -b {b} -t 3000 -l 0 -o false',
                    f'statsAll -a -t {topic}', f'getBrokerConfig -c {c}', f'haStatus -b {b}',
                    f'cleanUnusedTopic -b {b}', f'cleanExpiredCQ -c {c}', f'deleteExpiredCommitLog -b {b}',
                    'getNamesrvConfig', f'producerConnection -g nobody -t {topic}', f'producer -b {b}',
                    f'exportMetadata -c {c} -f {d}/out', f'exportMetadata -b {b} -t -s -f {d}/out',
                    f'exportConfigs -c {c} -f {d}/out', f'exportMetrics -c {c} -f {d}/out',
                    f'deleteSubGroup -c {c} -g {group} -r true', f'deleteTopic -c {c} -t {topic}'):
                if line.startswith('queryMsgByKey'):
                    time.sleep(1.5)  # the index may be behind
                ran = mqadmin(ctl, *line.split())
                expect(ran.code == 0, ran)
            expect(sorted(os.listdir(f'{d}/out')) == ['configs.json', 'metadata.json', 'metrics.json'])
        kept = {r['key']: r['value'] for r in ctl.ok('group', 'show', other, '--json').json()}
        expect(kept['retryMaxTimes'] == 7, kept)

    @case
    def topic_order_and_shares(ctl):
        topic = ctl.topic(5)
        broker = ctl.ok('cluster', '--json').json()[0]['brokerName']
        ctl.fails(1, 'topic', 'order', 'get', topic)
        ctl.fails(64, 'topic', 'order', 'put', topic, 'no numbers')
        ctl.ok('topic', 'order', 'put', topic, f'{broker}:5')
        expect(ctl.ok('topic', 'order', 'get', topic, '--json').json()[0]['orderConf'] == f'{broker}:5')
        ctl.ok('topic', 'order', 'delete', topic)
        ctl.fails(1, 'topic', 'order', 'get', topic)
        shares = ctl.ok('topic', 'allocate', topic, 'c,a', 'b', '--json').json()
        expect([(s['clientId'], s['count']) for s in shares] == [('a', 2), ('b', 2), ('c', 1)], shares)
        expect(shares[1]['queues'] == [f'{broker}/2', f'{broker}/3'], shares)

    @case
    def rates_and_units(ctl):
        topic, group = ctl.topic(1), ctl.group()
        ctl.ok('group', 'create', group)
        for n in range(5):
            ctl.ok('send', topic, f'm{n}', '--tag', 'A' if n % 2 else 'B')
        ctl.ok('consume', topic, '--group', group, '--count', '2')
        stats = ctl.ok('topic', 'stats', topic, '--json').json()
        for _ in range(150):  # figures are taken each 10 s
            if stats[0]['inMsg24Hour'] == 5:
                break
            time.sleep(0.2)
            stats = ctl.ok('topic', 'stats', topic, '--json').json()
        expect(len(stats) == 1 and stats[0]['inMsg24Hour'] == 5, stats)
        expect((stats[0]['group'], stats[0]['accumulation']) == (group, 3), stats)
        listed = ctl.ok('topic', 'stats', '--active', '--json').json()
        expect((topic, group) in rows_by(listed, 'topic', 'group'), listed)
        ctl.fails(1, 'topic', 'stats', topic + '_not')
        behind = ctl.ok('broker', 'lag', '--min-lag', '3', '--json').json()
        row = rows_by(behind, 'topic', 'group').get((topic, group))
        expect(row and (row['diff'], row['consumerOffset'], row['queueId']) == (3, 2, 0), behind)
        expect(all(r['diff'] >= 3 for r in behind), behind)
        units = ctl.ok('topic', 'units', topic, '0', '1', '--count', '2', '--json').json()
        expect([u['queueOffset'] for u in units] == [1, 2], units)
        sent = ctl.ok('message', 'at', topic, ctl.ok('cluster', '--json').json()[0]['brokerName'], '0', '1',
                      '--json').json()[0]
        expect(sent['body'] == 'm1' and sent['commitLogOffset'] == units[0]['physicOffset'], sent, units)
        expect(sent['storeSize'] == units[0]['physicSize'], sent, units)
        ctl.fails(1, 'topic', 'units', topic, '0', '99')
        ctl.fails(64, 'topic', 'units', topic, 'x', '0')
        gone = ctl.fails(1, 'message', 'at', topic, sent['brokerName'], '0', '5')
        expect('the queue ends at 5' in gone.err, gone)
        ctl.fails(1, 'message', 'at', topic, 'no_such_broker', '0', '0')

    @case
    def reading_up_to_a_time_and_by_tag(ctl):
        topic = ctl.topic(2)
        for n in range(5):
            ctl.ok('send', topic, f'early {n}', '--tag', 'A' if n else 'B', '-q', str(n % 2))
        time.sleep(0.3)
        between = int(time.time() * 1000)
        time.sleep(0.3)
        ctl.ok('send', topic, 'late')
        expect(len(ctl.bodies(topic, '--to', f'@{between}')) == 5)
        counts = {r['tag']: r['messages'] for r in ctl.ok('consume', topic, '--by-tag', '--json').json()}
        expect(counts == {'A': 4, 'B': 1, None: 1}, counts)
        ctl.fails(64, 'consume', topic, '--to', 'whenever')
        ctl.fails(64, 'consume', topic, '--to', 'now', '--follow')

    @case
    def latency_of_sends(ctl):
        topic = ctl.topic(2)
        row = ctl.ok('topic', 'latency', topic, '--count', '20', '--size', '1k', '--json').json()[0]
        expect((row['successCount'], row['failCount']) == (20, 0), row)
        expect(0 < row['p50Ms'] <= row['p99Ms'] <= row['maxMs'], row)
        expect(len(ctl.bodies(topic)) == 20 and len(ctl.bodies(topic)[0]) == 1024)
        row = ctl.ok('cluster', 'latency', '--count', '3', '--json').json()[0]
        expect(row['successCount'] == 3 and row['brokerName'] and row['cluster'], row)
        ctl.ok('topic', 'update', topic, '--perm', 'r')
        ctl.fails(1, 'topic', 'latency', topic)
        ctl.fails(64, 'topic', 'latency', topic, '--size', 'much')

    @case
    def traces_of_a_message(ctl):
        """A topic of traces with what clients write there, by hand."""
        topic, unique = ctl.topic(1), uuid_like(ctl.run_id)
        records = [f'Pub|{1000}|region|pg|T|{unique}|tag|k1|10.0.0.1:10911|9|7|0|OFFSETID|true^',
                   f'SubBefore|{2000}|region|cg|r1|{unique}|0|k1^',
                   f'SubAfter|r1|{unique}|30|true|k1|0|2030|cg^']
        for record in records:
            with tempfile.NamedTemporaryFile() as f:
                f.write(record.replace('|', '\1').replace('^', '\2').encode())
                f.flush()
                ctl.ok('send', topic, '--file', f.name, '-k', unique)
        for _ in range(50):  # the index may be behind
            ran = ctl.run('message', 'trace', unique, '--topic', topic, '--json')
            if ran.code == 0 and len(ran.json()) == 2 and ran.json()[1]['costTime'] == 30:
                break
            time.sleep(0.2)
        events = ran.json()
        expect([e['event'] for e in events] == ['sent', 'consumed'], events)
        expect((events[0]['costTime'], events[0]['storeHost']) == (7, '10.0.0.1:10911'), events)
        expect((events[1]['group'], events[1]['status'], events[1]['costTime']) == ('cg', 'ok', 30), events)
        nothing = ctl.fails(1, 'message', 'trace', 'nosuchid', '--topic', topic)
        expect('tells nothing of' in nothing.err, nothing)

    @case
    def replicas_of_a_broker(ctl):
        rows = ctl.ok('broker', 'replicas', '--json').json()
        expect(rows and rows[0]['role'] == 'master' and rows[0]['masterCommitLogMaxOffset'] > 0, rows)

    @case
    def group_settings(ctl):
        group = ctl.group()
        policy = '{"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1000,5000]}}'
        ctl.ok('group', 'create', group, '--no-from-min', '--retry-queues', '2', '--retry-policy', policy)
        shown = {r['key']: r['value'] for r in ctl.ok('group', 'show', group, '--json').json()}
        expect((shown['retryQueueNums'], shown['retryDelays']) == (2, '1s 5s'), shown)
        ctl.fails(64, 'group', 'create', group, '--retry-policy', 'quick')
        ctl.fails(64, 'group', 'create', group, '--attribute', 'x')

    @case
    def export_and_import(ctl):
        topic, other, group = ctl.topic(3), ctl.topic(2), ctl.group()
        ctl.ok('topic', 'update', topic, '--attribute', 'message.type=FIFO', '--perm', 'r')
        ctl.ok('group', 'create', group, '--retry-max', '3')
        with tempfile.TemporaryDirectory() as d:
            out = f'{d}/a/b'
            ctl.ok('cluster', 'export', out)
            held = json.loads(pathlib.Path(out, 'metadata.json').read_text())
            expect(topic in held['topicConfigTable'] and group in held['subscriptionGroupTable'], held)
            expect('TBW102' not in held['topicConfigTable'] and len(held['brokers']) == 1, held)
            expect('runtimeQuota' in pathlib.Path(out, 'metrics.json').read_text())
            expect('brokerConfigs' in json.loads(pathlib.Path(out, 'configs.json').read_text()))
            ran = ctl.ok('cluster', 'import', out, '--yes')
            expect(ran.out.startswith('0 to create, 0 to change, 0 that differ'), ran)
            ctl.ok('topic', 'delete', topic, '--yes')
            ctl.ok('group', 'delete', group, '--yes')
            ctl.ok('topic', 'update', other, '--queues', '1')
            plan = rows_by(ctl.ok('cluster', 'import', out, '--dry-run', '--json').json(), 'kind', 'name')
            expect(plan['topic', topic]['action'] == 'create', plan)
            expect(plan['group', group]['action'] == 'create', plan)
            expect(plan['topic', other]['action'] == 'differs', plan)
            expect(plan['topic', other]['what'] == 'read 1 -> 2, write 1 -> 2', plan)
            ctl.fails(1, 'topic', 'route', topic)  # that was a dry run
            ctl.fails(64, 'cluster', 'import', out)  # nobody to ask
            ctl.ok('cluster', 'import', out, '--yes')
            queue = ctl.ok('topic', 'route', topic, '--json').json()['queueDatas'][0]
            expect((queue['readQueueNums'], queue['perm']) == (3, 4), queue)
            shown = {r['key']: r['value'] for r in ctl.ok('group', 'show', group, '--json').json()}
            expect(shown['retryMaxTimes'] == 3, shown)
            ran = ctl.ok('cluster', 'import', out, '--update', '--yes')
            expect(ran.out.splitlines()[-2:] == ['0 to create, 1 to change, 0 that differ and stay, '
                                                 + ran.out.splitlines()[-2].split(', ')[-1], '1 done'], ran)
            ctl.ok('topic', 'update', other, '--queues', '8')
            ran = ctl.ok('cluster', 'import', out, '--update', '--yes')
            expect(ran.out.startswith('0 to create, 0 to change'), 'queues never become less', ran)
            again = pathlib.Path(d, 'again')
            ctl.ok('cluster', 'export', str(again), '--only', 'metadata')
            expect(os.listdir(again) == ['metadata.json'], os.listdir(again))
            one = json.loads((again / 'metadata.json').read_text())['topicConfigTable'][topic]
            expect(one['attributes'] == {'message.type': 'FIFO'}, one)
            # The files of a store's own.
            config = pathlib.Path(d, 'config')
            config.mkdir()
            table = {topic: dict(topicName=topic, readQueueNums=9, writeQueueNums=9, perm=6)}
            (config / 'topics.json').write_text(json.dumps(dict(dataVersion=dict(counter=1),
                                                                topicConfigTable=table)))
            plan = ctl.ok('cluster', 'import', str(config), '--dry-run', '--json').json()
            expect(len(plan) == 1 and plan[0]['what'].startswith('read 3 -> 9'), plan)
            (config / 'topics.json').write_text('{"topicConfigTable":[]}')
            ctl.fails(65, 'cluster', 'import', str(config))
            ctl.fails(66, 'cluster', 'import', str(d))
            ctl.fails(64, 'cluster', 'export', out, '--only', 'everything')
            ctl.fails(1, 'cluster', 'export', '/proc/nowhere')

    @case
    def many_are_imported(ctl):
        count = 450  # more than a request takes
        names = [f'ctl_{ctl.run_id}_many_{n}' for n in range(count)]
        with tempfile.TemporaryDirectory() as d:
            table = {n: dict(topicName=n, readQueueNums=1, writeQueueNums=1, perm=6) for n in names}
            held = json.dumps(dict(topicConfigTable=table, exportTime=1))
            pathlib.Path(d, 'metadata.json').write_text(held)
            ran = ctl.ok('cluster', 'import', d, '--yes')
            expect(ran.out.endswith(f'\n{count} done\n'), ran.out[-300:])
            expect('an export of mqadmin' in ran.err, ran.err)
            ran = ctl.ok('cluster', 'import', d, '--yes')
            expect(ran.out == '0 to create, 0 to change, 0 that differ and stay, '
                              f'{count} as they should be\n', ran)
        ctl.topics += names[:2]


def uuid_like(run_id):
    return ('7F0000010001' + run_id * 3).upper()[:32]
