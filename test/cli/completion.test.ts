import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { type Command, commonOptions } from '../../src/cli/command.ts'
import { complete } from '../../src/cli/complete.ts'
import { commands } from '../../src/cli/commands.ts'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

const config = {
  'routes.yaml':
    'upstreams: { b: { url: http://b } }\nroutes:\n  orders: { path: /api/orders, upstream: b, access: { roles: [admin] } }\n  files: { path: /api/files/*, upstream: b }\naliases: { /api/bestellungen: /api/orders }\n',
  'gateway.yaml':
    'server: { mount: /x }\nlogin: { sources: [{ kind: users-file, file: users.yaml }] }\n',
  'users.yaml':
    'users: { alice: { password: "$argon2id$v=19$m=19456,t=2,p=1$UIDpPlOgt23l1C1NIuyTgg$GUx+Ngh31iqO/lwsmPpqSC9QDzRyME5ieVVUa3Fs318", roles: [clerk] } }\n'
}

t.test(
  'in a real bash, tab completes commands, options, and the names that the config folder has',
  async t => {
    const folder = textFolder(t.after, config)
    const bin = mkdtempSync(join(tmpdir(), 'gateway-bin-'))
    t.after(() => rmSync(bin, { recursive: true }))
    const program = join(bin, 'console-gateway')
    writeFileSync(
      program,
      `#!/bin/sh\nexec '${process.execPath}' '${resolve('src/launch.js')}' "$@"\n`
    )
    chmodSync(program, 0o755)
    writeFileSync(join(bin, 'an access.log'), '')
    const lines = [
      ['console-gateway', 'ex'],
      ['console-gateway', 'sessions', ''],
      ['console-gateway', 'why', '--last', '5', '-c', folder, '--route', ''],
      ['console-gateway', 'explain', '-c', folder, 'GET', '/x/api/b'],
      ['console-gateway', 'explain', '-c', folder, 'GET', '/x/api/orders', '--as', ''],
      ['console-gateway', 'check', '--s'],
      ['console-gateway', 'explain', 'GET', '/', '--answer', `${bin}/an`]
    ]
    const quoted = (word: string) => `'${word}'`
    const script = `source <(console-gateway completion bash)
complete -p console-gateway
try () { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _console_gateway; printf '%s|' "\${COMPREPLY[@]}"; echo; }
${lines.map(words => `try ${words.map(quoted).join(' ')}`).join('\n')}`
    const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', script], {
      env: { PATH: `${bin}:${process.env['PATH'] ?? ''}` }
    })
    t.equal(stderr, '')
    t.same(stdout.trimEnd().split('\n'), [
      'complete -F _console_gateway console-gateway',
      'explain|',
      'list|close|',
      'orders|files|profile|',
      '/x/api/bestellungen|',
      'alice|',
      '--strict|',
      `${bin}/an access.log|`
    ])
  }
)

t.test('what may stand next follows from what each command says of itself', async t => {
  const known = {
    commands: commands as Readonly<Record<string, Command>>,
    common: commonOptions,
    valuesOf: async (placeholder: string, folder: string) => [
      { value: `${placeholder}@${folder}`, about: '' }
    ]
  }
  const words = async (...given: string[]) =>
    (await complete(given, known)).candidates.map(({ value }) => value)
  t.same(await words(''), Object.keys(commands))
  t.same(await words('nothing', ''), [])
  t.same(await words('limits', 's'), ['show'])
  t.same(await words('why', '--last', '5', '--route', ''), ['ROUTE@config'])
  t.same(await words('-c', 'there', 'why', '--last', '5', '--route', ''), ['ROUTE@there'])
  t.same(await words('why', '--last', '5', '--config=there', '--route', ''), ['ROUTE@there'])
  t.same(await words('sessions', 'close', 'u', ''), ['SESSION-ID@config'])
  t.same(await words('sessions', 'list', 'u', ''), [])
  t.same(await words('explain', '--role', 'a', '--ro'), ['--role'], 'what may be given again')
  t.same(await words('explain', 'GET', '/', '--header', 'a: 1', '--hea'), ['--header'])
  t.same(await words('explain', '--as', 'a', '--as'), [], 'what may not')
  const gateway = ['--url', '--token-file', '--ca']
  const endOptions = ['--route', '--json', ...gateway, '--config', '--help']
  t.same(await words('maintenance', 'end', '--'), endOptions)
  t.same(await words('lockouts', 'lift', '--a'), ['--account', '--address'])
  t.same(await words('explain', 'GET', '/', '--live', '--'), [
    '--as',
    '--role',
    '--from',
    '--header',
    '--data',
    '--answer',
    '--json',
    '--config',
    '--help'
  ])
  t.same((await complete(['plan', ''], known)).names, 'folders')
  t.same((await complete(['check', '--config', ''], known)).names, 'folders')
  t.same((await complete(['explain', 'GET', '/', '--answer', ''], known)).names, 'files')
})

t.test('each shell has a script, and a config with faults gives no names and no noise', async t => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    t.match(await run(['completion', shell]), { code: 0, out: /completion words -- / }, shell)
  }
  t.match(await run(['completion', 'tcsh']), { code: 2, err: /Name a shell: bash, zsh, fish\./ })
  t.same(
    await run([
      'completion',
      'words',
      '--',
      'shape',
      '-c',
      textFolder(t.after, { 'routes.yaml': 'routes: 5' }),
      ''
    ]),
    { code: 0, out: '', err: '' }
  )
})
