/** The gateway as it was at another commit, as a process of its own: for tests of rolling updates. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { running } from './command.ts'

const root = join(import.meta.dirname, '../..')

/** A shallow clone or an unpacked archive does not have it. */
export function hasCommit(commit: string): boolean {
  return spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).status === 0
}

/** @returns a folder with that commit's files and today's packages */
export function unpack(cleanUp: (undo: () => unknown) => void, commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'old-version-'))
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  const archive = execFileSync('git', ['archive', commit], {
    cwd: root,
    maxBuffer: 256 * 1024 * 1024
  })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Takes out what the tests' configs set and former versions do not know. */
function withoutNewKeys(config: string): void {
  const file = join(config, 'gateway.yaml')
  const gateway = parse(readFileSync(file, 'utf8')) as { server?: { overload?: object } }
  delete gateway.server?.overload
  writeFileSync(file, stringify(gateway))
}

/** Starts a gateway of a folder on a config. @returns where it listens, once it does */
export async function startAt(
  cleanUp: (undo: () => unknown) => void,
  folder: string,
  config: string,
  env: Record<string, string>
) {
  withoutNewKeys(config)
  const words = [join(folder, 'src/launch.js'), 'start', '--config', config]
  const gateway = running(cleanUp, process.execPath, words, env)
  const said = await gateway.says('for operators on')
  const line = said.split('\n').find(each => each.includes('for operators on')) ?? ''
  const { url, ops } = JSON.parse(line) as { url: string; ops: string }
  return {
    url,
    ops,
    says: gateway.says,
    stop: async () => {
      gateway.signal('SIGTERM')
      await gateway.ended
    }
  }
}
