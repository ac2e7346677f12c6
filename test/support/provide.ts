/**
 * `node test/support/provide.ts PROGRAM…`: takes what tests need and is missing from Debian's packages where we are
 * root, else says it. In CI nothing may be missing. tap is built with the plugins of .taprc.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { t } from 'tap'
import { parse } from 'yaml'

/** Where they are not just of the program's name. */
const packages: Readonly<Record<string, readonly string[]>> = {
  'chromium': ['chromium', 'fonts-dejavu-core'],
  'systemd-analyze': ['systemd'],
  'systemd-socket-activate': ['systemd']
}

const run = (command: string, ...args: readonly string[]) =>
  spawnSync(command, args, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'inherit']
  }).status === 0

/** Servers are in /usr/sbin, which is not in everyone's PATH; Chromium has other names elsewhere. */
const isThere = (program: string) =>
  [program, ...(program === 'chromium' ? ['chromium-browser', 'google-chrome'] : [])].some(name =>
    run('sh', '-c', `PATH="$PATH:/usr/sbin"; command -v ${name}`)
  )

/** tap is installed with its default plugins; a first `tap run` with others would still start the tests with those. */
function isTapBuilt(): boolean {
  const { plugin } = parse(readFileSync('.taprc', 'utf8')) as { plugin: readonly string[] }
  const built = new Set(t.pluginSignature.split('\n'))
  return plugin.every(name => (name.startsWith('!') ? !built.has(name.slice(1)) : built.has(name)))
}

if (!isTapBuilt() && !run(process.execPath, 'node_modules/tap/dist/esm/run.mjs', 'build')) {
  process.exitCode = 1
}

const needed = process.argv.slice(2)
const missing = needed.filter(program => !isThere(program))
const wanted = missing.flatMap(program => packages[program] ?? [program])
if (missing.length > 0 && process.getuid?.() === 0 && isThere('apt-get')) {
  process.stderr.write(`The tests need ${missing.join(', ')}: installing ${wanted.join(' ')} …\n`)
  // another installation may hold the lock, and a mirror may be away for a moment
  const patience = ['-qq', '-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::Retries=3']
  run('apt-get', 'update', ...patience)
  run('apt-get', 'install', '-y', '--no-install-recommends', ...patience, ...wanted)
}
const still = missing.filter(program => !isThere(program))
if (still.length > 0) {
  process.stderr.write(`Tests that need ${still.join(', ')} fail: install ${wanted.join(' ')}.\n`)
  if (process.env['CI'] !== undefined) process.exitCode = 1
}
