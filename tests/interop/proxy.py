"""Apache's proxy 5.5.0 in cluster mode in front of the broker, and the gRPC client of RocketMQ 5."""
import json
import os
import socket
import time

import remoting
from harness import CLUSTER, HERE, call, free_ports, reference_java, run_tool, wait_until
from suites import built, run_checks

TYPES = {'normal': 'NORMAL', 'simple': 'NORMAL', 'retry': 'NORMAL', 'tags': 'NORMAL', 'sql': 'NORMAL',
         'deadletter': 'NORMAL', 'fifo': 'FIFO', 'delay': 'DELAY', 'transaction': 'TRANSACTION'}


def grpc_client(home):
    source = os.path.join(HERE, 'java-grpc')

    def build(out):
        run_tool(['mvn', '-q', '-B', '-f', os.path.join(source, 'pom.xml'), '-Dout=' + out, 'compile',
                  'dependency:copy-dependencies', '-DoutputDirectory=' + out + '/lib'])
    out = built('java-grpc', source, build)
    return ['java', '-Xmx512m', '-XX:TieredStopAtLevel=1', '-Duser.home=' + home,
            '-Drocketmq.log.root=' + home + '/logs', '-cp', out + '/classes:' + out + '/lib/*',
            'rmqd.grpc.Main']


def create(broker, prefix):
    """The topics and groups of the checks, with their message types."""
    for check, kind in TYPES.items():
        topic = '%s_%s' % (prefix, check)
        fields = dict(topic=topic, defaultTopic='TBW102', readQueueNums='4', writeQueueNums='4', perm='6',
                      topicFilterType='SINGLE_TAG', topicSysFlag='0', order='false',
                      attributes='+message.type=' + kind)
        group = dict(groupName=topic + '_g', consumeEnable=True, consumeFromMinEnable=True,
                     consumeBroadcastEnable=True, consumeMessageOrderly=kind == 'FIFO', retryQueueNums=1,
                     retryMaxTimes=1 if check == 'deadletter' else 16, brokerId=0,
                     whichBrokerWhenConsumeSlowly=1, notifyConsumerIdsChangedEnable=True)
        for code, ext, body in ((17, fields, b''), (200, {}, json.dumps(group).encode())):
            header, _ = call(broker, code, ext, body, 20)
            if header['code'] != 0:
                raise RuntimeError('request %d was answered by %s' % (code, header))


def listens(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(('127.0.0.1', port)) == 0


def proxy(place):
    remoting_port, grpc_port = free_ports()
    home = os.path.join(place.directory, 'home')
    os.makedirs(os.path.join(home, 'conf'), exist_ok=True)
    configuration = os.path.join(home, 'conf', 'rmq-proxy.json')
    with open(configuration, 'w') as f:
        json.dump(dict(rocketMQClusterName=CLUSTER, proxyMode='CLUSTER', namesrvAddr=place.namesrv,
                       grpcServerPort=grpc_port, remotingListenPort=remoting_port,
                       localServeAddr='127.0.0.1', proxyName='proxy'), f)
    log = os.path.join(place.directory, 'proxy.log')
    argv = reference_java(home, 'org.apache.rocketmq.proxy.ProxyStartup', '-n', place.namesrv, '-pm',
                          'cluster', '-pc', configuration, heap='768m')
    p = place.procs.start(argv, log, env=dict(os.environ, RMQ_PROXY_HOME=home, ROCKETMQ_HOME=home))
    wait_until(lambda: listens(grpc_port), 120, 'a proxy (log: %s)' % log, p)
    prefix = 'proxy_%d_%d' % (os.getpid(), int(time.time()))
    create(place.broker, prefix)
    argv = grpc_client(place.directory) + ['127.0.0.1:%d' % grpc_port, prefix]
    yield from run_checks(place, argv, 900)
    place.procs.stop(p)
    client = remoting.Client(place.broker)
    dead = remoting.offsets(client, '%%DLQ%%%s_deadletter_g' % prefix, 0)
    client.close()
    yield 'dead_letter_queue', None if dead == (0, 1) else 'offsets of the dead letters: %s' % (dead,)
