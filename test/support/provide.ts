/**
 * `node test/support/provide.ts PROGRAM…`: takes what tests need and is missing from Debian's packages where we are
 * root, else says it. In CI nothing may be missing. tap is built with the plugins of .taprc.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
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

/** Unpacked and not installed, since the package would start a service: where, as in slapd.ts. */
const unpacked: Readonly<Record<string, string>> = { slapd: 'node_modules/.cache/slapd' }

/** Servers are in /usr/sbin, which is not in everyone's PATH; Chromium has other names elsewhere. */
const isThere = (program: string) =>
  [program, ...(program === 'chromium' ? ['chromium-browser', 'google-chrome'] : [])].some(name =>
    run('sh', '-c', `PATH="$PATH:/usr/sbin:${unpacked[name] ?? ''}/usr/sbin"; command -v ${name}`)
  )

/**
 * tap is installed with its default plugins; a first `tap run` with others would still start the
 * tests with those.
 */
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
  const install = ['install', '-y', '--no-install-recommends', ...patience]
  const installed = wanted.filter(name => unpacked[name] === undefined)
  if (installed.length > 0) run('apt-get', ...install, ...installed)
  for (const [name, folder] of Object.entries(unpacked)) {
    if (!wanted.includes(name)) continue
    const archives = resolve(folder, 'archives')
    mkdirSync(join(archives, 'partial'), { recursive: true })
    // With the libraries that are missing.
    run('apt-get', ...install, '--download-only', '-o', `Dir::Cache::archives=${archives}`, name)
    for (const file of readdirSync(archives).filter(each => each.endsWith('.deb'))) {
      run('dpkg', '-x', join(archives, file), folder)
    }
  }
}
const still = missing.filter(program => !isThere(program))
if (still.length > 0) {
  process.stderr.write(`Tests that need ${still.join(', ')} fail: install ${wanted.join(' ')}.\n`)
  if (process.env['CI'] !== undefined) process.exitCode = 1
}
