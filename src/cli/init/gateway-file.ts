/** `gateway.yaml`, from what `init` was told and saw. */
import { relative } from 'node:path'
import type { BackendSignIn, Findings } from './model.ts'
import { entry, file, indent, section } from './yaml.ts'

const head = [
  '# yaml-language-server: $schema=schema/gateway.schema.json',
  '# Settings of the installation; a change needs a restart. All keys: docs/configuration.md'
]

const server = [
  'server:',
  '  listen: ${LISTEN:-127.0.0.1:8080}',
  'ops:',
  '  listen: ${OPS_LISTEN:-127.0.0.1:9090}',
  '',
  '# Without Redis, sessions are kept in memory: for one process and for trying it out.',
  'redis:',
  '  url: ${REDIS_URL:-}'
]

const session = [
  'session:',
  '  secrets:',
  '    # Of the file .env beside this one, unless the environment has another value.',
  '    - ${SESSION_SECRET}',
  '  cookie:',
  '    # For http on this machine. In production remove this line: the cookie is for https then.',
  '    secure: false'
]

const usersSource = ['- kind: users-file', '  file: users.yaml']

/** @param folder where the file will stand */
export function gatewayFile(findings: Findings, folder: string): string {
  const { console: choice, backendPreset } = findings
  const presets = [
    ...(choice.preset === undefined ? [] : entry('extends', choice.preset)),
    ...(backendPreset === undefined ? [] : entry('backend', backendPreset))
  ]
  const sources = findings.signIn === undefined ? usersSource : backendSource(findings)
  const root = choice.root === undefined ? undefined : relative(folder, choice.root)
  return file(head, [
    presets,
    server,
    session,
    section('login', section('sources', sources)),
    root === undefined
      ? []
      : section('console', entry('root', root, 'The built files of the console; seen from here.'))
  ])
}

/** A preset describes the source of its family; what was seen wins over it. */
function backendSource({ signIn, isPresetSource }: Findings): string[] {
  if (signIn === undefined) return []
  const lines = [
    'kind: upstream-login',
    'name: backend',
    'upstream: backend',
    ...(isPresetSource ? [] : sourceLines(signIn))
  ]
  return lines.map((line, index) => (index === 0 ? `- ${line}` : indent([line])[0])) as string[]
}

function sourceLines({ signIn, userCall, logout }: BackendSignIn): string[] {
  const { call, tests, tokens, cookies } = signIn
  const user = userCall?.user ?? signIn.user
  const body = { ...call.extra, [call.username]: '{username}', [call.password]: '{password}' }
  const from = userCall === undefined ? {} : { from: { path: userCall.path } }
  const tested = tests.isGuess === true ? 'Not seen: correct these two by hand.' : undefined
  return [
    ...entry('path', call.path),
    ...(call.format === 'form' ? entry('format', 'form') : []),
    ...entry('body', body),
    ...entry('success', tests.success, tested),
    ...entry('refused', tests.refused),
    ...entry('user', { ...from, ...user }),
    ...(tokens === undefined ? [] : entry('token', tokens.token)),
    ...(cookies.length === 0 ? [] : entry('cookies', cookies)),
    ...(logout === undefined ? [] : entry('logout', logout))
  ]
}
