/**
 * Redis 8 and Valkey as the next Debian has them, unpacked with their libraries and not installed. Kept in a folder of
 * this machine's temporary files: the second run downloads nothing.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const packages = [
  'redis-server redis-tools valkey-server valkey-tools libatomic1 libc6 libcap2 libgcc-s1 libjemalloc2',
  'liblzf1 libssl3t64 libstdc++6 libsystemd0 libzstd1 zlib1g'
]
  .join(' ')
  .split(' ')

/** @returns the commands that start each server. @throws where they cannot be had */
export function otherServers(): Record<'Redis 8' | 'Valkey 8', readonly string[]> {
  const root = join(tmpdir(), 'console-gateway-trixie')
  if (!existsSync(root)) unpackTo(root)
  const libraries = join(
    root,
    `usr/lib/${execFileSync('uname', ['-m']).toString().trim()}-linux-gnu`
  )
  const server = (name: string) => [
    execFileSync('find', [libraries, '-name', 'ld-linux-*.so.*']).toString().trim(),
    ...['--library-path', libraries, '--argv0', name, join(root, 'usr/bin', name)]
  ]
  return { 'Redis 8': server('redis-server'), 'Valkey 8': server('valkey-server') }
}

function unpackTo(root: string): void {
  const folder = `${root}-${process.pid}`
  for (const each of ['lists/partial', 'cache/archives/partial', 'parts', 'deb', 'root']) {
    mkdirSync(join(folder, each), { recursive: true })
  }
  const sources = join(folder, 'sources.list')
  const key = '/usr/share/keyrings/debian-archive-keyring.gpg'
  writeFileSync(sources, `deb [signed-by=${key}] ${mirror()} trixie main\n`)
  const options = [
    `Dir::Etc::sourcelist=${sources}`,
    `Dir::Etc::sourceparts=${folder}/parts`,
    `Dir::State::lists=${folder}/lists`,
    `Dir::Cache=${folder}/cache`,
    'APT::Sandbox::User=root',
    'Acquire::Retries=3'
  ].flatMap(option => ['-o', option])
  const apt = (...args: readonly string[]) =>
    execFileSync('apt-get', [...options, '-qq', ...args], {
      cwd: join(folder, 'deb'),
      stdio: ['ignore', 'ignore', 'inherit']
    })
  apt('update')
  apt('download', ...packages)
  execFileSync('sh', ['-c', 'for each in *.deb; do dpkg -x "$each" ../root; done'], {
    cwd: join(folder, 'deb')
  })
  renameSync(join(folder, 'root'), root)
}

/** Where this machine has its packages from. */
function mirror(): string {
  const command =
    'grep -rhoE "https?://[^ ]+/debian/?( |$)" /etc/apt/sources.list /etc/apt/sources.list.d'
  const [first] = spawnSync('sh', ['-c', command]).stdout.toString().split('\n')
  if (first === undefined || first === '') throw new Error('apt has no mirror of Debian')
  return first.trim()
}
