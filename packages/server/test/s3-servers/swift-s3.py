#!/usr/bin/python3
"""Real S3 for tests: the S3 API of OpenStack Swift in one process, on loopback.

Debian: python3-swift (apt-get install --no-install-recommends). Run by /usr/bin/python3.

usage: swift-s3.py DIRECTORY
Prints "ready <port> <access key> <secret key>", serves until its standard input ends and removes
the directory: so nothing outlives the test that began it, not even one that was killed. The
directory has to be on a file system that keeps extended attributes of users.
"""
import atexit
import logging
import os
import shutil
import sys

import eventlet

eventlet.monkey_patch()
from eventlet import listen, wsgi
from eventlet.patcher import original

import swift.common.utils

directory = os.path.abspath(sys.argv[1])
atexit.register(shutil.rmtree, directory, ignore_errors=True)
settings = os.path.join(directory, 'settings')
os.makedirs(settings, exist_ok=True)
os.makedirs(os.path.join(directory, 'served', 'disk'), exist_ok=True)


def write(name, text):
    path = os.path.join(settings, name)
    with open(path, 'w') as file:
        file.write(text)
    return path


# Nothing here has to survive a power cut.
os.fsync = os.fdatasync = lambda fd: None

# The path is a constant of Swift: it has to be set before the other modules are imported.
swift.common.utils.SWIFT_CONF_FILE = write(
    'swift.conf',
    '[swift-hash]\nswift_hash_path_suffix = tests\n'
    '[storage-policy:0]\nname = only\ndefault = yes\n')

from swift.common import storage_policy
from swift.common.ring import RingBuilder
from swift.common.wsgi import SwiftHttpProtocol, loadapp

sockets = {name: listen(('127.0.0.1', 0)) for name in ('account', 'container', 'object', 'proxy')}
configurations = {}
for server in ('account', 'container', 'object'):
    port = sockets[server].getsockname()[1]
    ring = RingBuilder(2, 1, 0)
    ring.add_dev(dict(id=0, region=1, zone=1, ip='127.0.0.1', port=port, device='disk', weight=1,
                      replication_ip='127.0.0.1', replication_port=port))
    ring.rebalance()
    ring.get_ring().save(os.path.join(settings, f'{server}.ring.gz'))
    configurations[server] = write(
        f'{server}.conf',
        f'[DEFAULT]\ndevices = {directory}/served\nmount_check = false\nswift_dir = {settings}\n'
        f'bind_ip = 127.0.0.1\nbind_port = {port}\nlog_level = ERROR\nfallocate_reserve = 0\n'
        f'[app:main]\nuse = egg:swift#{server}\n')

filters = {
    'catch_errors': '', 'gatekeeper': '', 'healthcheck': '',
    'cache': 'memcache_servers = 127.0.0.1:1',
    'listing_formats': '', 'bulk': '',
    # Pages of twenty: paging is met with tens of blobs instead of thousands.
    's3api': 'location = us-east-1\ncheck_bucket_owner = false\nmax_bucket_listing = 20\n'
             'multi_delete_concurrency = 8',
    'tempauth': 'user_test_tester = testing .admin',
    'copy': '', 'slo': '', 'dlo': '',
    'versioned_writes': 'allow_object_versioning = true',
    'symlink': '',
}
configurations['proxy'] = write(
    'proxy.conf',
    f'[DEFAULT]\nswift_dir = {settings}\nbind_ip = 127.0.0.1\n'
    f'bind_port = {sockets["proxy"].getsockname()[1]}\nlog_level = ERROR\n'
    f'[pipeline:main]\npipeline = {" ".join(filters)} proxy-server\n'
    '[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n'
    + ''.join(f'[filter:{name}]\nuse = egg:swift#{"memcache" if name == "cache" else name}\n{lines}\n'
              for name, lines in filters.items()))

storage_policy.reload_storage_policies()
servers = [
    eventlet.spawn(wsgi.server, sockets[name], loadapp(configuration), log=logging.getLogger(name),
                   protocol=SwiftHttpProtocol, log_output=False,
                   custom_pool=eventlet.GreenPool(256))
    for name, configuration in configurations.items()]


def end_with_standard_input():
    original('os').read(0, 1)
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(0)


original('threading').Thread(target=end_with_standard_input, daemon=True).start()
print('ready', sockets['proxy'].getsockname()[1], 'test:tester', 'testing', flush=True)
for server in servers:
    server.wait()
