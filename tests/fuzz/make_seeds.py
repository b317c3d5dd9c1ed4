#!/usr/bin/env python3
"""Writes the seeds of the proto fuzzers from the golden bytes and a few hand-made inputs.

usage: make_seeds.py GOLDEN_FILE CORPUS_FOLDER
"""
import pathlib
import struct
import sys

BODY_KINDS = {'heartbeat': 1, 'route': 2, 'route strict': 2, 'register plain': 3, 'register compressed': 3,
              'lock': 4, 'reset offset': 5, 'topics': 6, 'topics pretty': 6, 'groups': 7, 'topic stats': 9,
              'consumer connection': 10, 'cluster': 11}


def main(golden, corpus):
    corpus = pathlib.Path(corpus)

    def seed(target, name, data):
        path = corpus / target / name.replace(' ', '-')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    bytes_of = {}
    for line in pathlib.Path(golden).read_text().splitlines():
        name, text = line.split('\t')
        bytes_of[name] = bytes.fromhex(text)
    for name, data in bytes_of.items():
        if name.startswith(('request', 'response')):
            seed('proto_frame', name, b'\x05' + data)
            word, = struct.unpack_from('>I', data, 4)
            seed('proto_header', name, bytes([word >> 24]) + data[8:8 + (word & 0xffffff)])
        elif name.startswith('record'):
            seed('proto_record', name, b'\0' + data)
        elif name == 'batch':
            seed('proto_record', name, b'\1' + data)
        elif name.startswith('offset id'):
            seed('proto_record', name, b'\3' + data)
        elif name in BODY_KINDS:
            seed('proto_body', name, bytes([BODY_KINDS[name]]) + data)
    seed('proto_frame', 'two', b'\x03' + bytes_of['request JSON'] + bytes_of['response ROCKETMQ'])
    seed('proto_header', 'scalars', b'\0{"code":34,"extFields":{"a":1,"b":true,"c":null,"d":{"e":[1]}},'
         b'"opaque":-1,"remark":null,"language":"GO","x":[{}]}\n')
    seed('proto_header', 'escapes',
         b'\0{"remark":"\\u0001\\ud83d\\ude00\\ud800\\/","extFields":{"a\\u0062":"\\""}}')
    seed('proto_record', 'properties',
         b'\2TAGS\nKEYS\x01k1 k2\x02TAGS\x01TagA\x02x\x02\x01v\x02n\x01\x02b\x01' b'2\x01' b'3')
    seed('proto_body', 'fastjson', b'\0{0:\'a\',{"q":1}:[+1,2L,],/* c */b:"\\u0041",$ref:null}')
    seed('proto_body', 'offsets',
         b'\x08{"dataVersion":{"counter":{"value":3}},"offsetTable":{"T@g":{0:5,3:"7"}}}')
    seed('proto_body', 'broker-lag',
         b'\x0c{"brokerAddr":"h:1","consumeStatsList":[{"g":[{"consumeTps":1.5,"offsetTable":'
         b'{{"brokerName":"b","queueId":0,"topic":"T"}:{"brokerOffset":9,"consumerOffset":4}}}]}],'
         b'"totalDiff":5}')
    seed('proto_body', 'broker-stats',
         b'\x0d{"statsDay":{"avgpt":1.0,"sum":3,"tps":0.1},"statsHour":{},"statsMinute":{"sum":"7"}}')
    seed('proto_body', 'queue-units',
         b'\x0e{"maxQueueIndex":9,"minQueueIndex":1,"queueData":[{"eval":true,"msg":"m","physicOffset":4,'
         b'"physicSize":5,"tagsCode":-6}]}')
    seed('proto_body', 'replicas',
         b'\x0f{"haClientRuntimeInfo":{"masterAddr":"h:2"},"haConnectionInfo":[{"addr":"h:3","inSync":true}],'
         b'"inSyncSlaveNums":1,"master":true,"masterCommitLogMaxOffset":7}')
    seed('proto_body', 'export',
         b'\x10{"brokers":{"b":{"topicConfigTable":{"T":{"topicName":"T","attributes":{"a":"b"}}}}},'
         b'"exportTime":1,"subscriptionGroupTable":{"g":{"groupName":"g"}},"topicConfigTable":{}}')
    seed('proto_body', 'reference',
         b'\1{"clientID":"c","consumerDataSet":[{"subscriptionDataSet":[{"topic":"T"}]},'
         b'{"subscriptionDataSet":[{"$ref":"$.consumerDataSet[0].subscriptionDataSet[0]"}]}]}')


if __name__ == '__main__':
    main(*sys.argv[1:])
