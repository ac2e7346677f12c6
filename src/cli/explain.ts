/** `explain`: every decision of the gateway on a request, with file and line. */
import { METHODS } from 'node:http'
import { isIP } from 'node:net'
import { sourceName } from '../config/schema/gateway.ts'
import { loadConfig } from '../config/load/load.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import type { Status } from '../admin/health.ts'
import type {
  Decision,
  Explained,
  Location,
  ShownMaintenance
} from '../dry-run/explain/decision.ts'
import { explain as explanationOf, type Explanation } from '../dry-run/explain/explanation.ts'
import { identityOf } from '../login/file-users.ts'
import { type Invocation, type Output, UsageError } from './command.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import { askAdmin } from './admin-client.ts'
import { paint } from './colours.ts'
import { anyHeadersOf } from './header-option.ts'
import { jsonText } from './output.ts'

export async function explain(invocation: Invocation): Promise<number> {
  const { gateway, io } = invocation
  const config = loadConfig(invocation.config, io.env)
  const explanation = await withAddresses(
    await explanationOf(config, explained(config, invocation), {
      maintenance: async () => {
        const { operators } = await askAdmin(gateway, '/ops/api/maintenance')
        return operators as readonly ShownMaintenance[]
      }
    }),
    async () => (await askAdmin(gateway, '/ops/api/status')) as unknown as Status
  )
  io.stdout.write(
    invocation.json ? jsonText(explanation) : formatExplanation(explanation, io.stdout)
  )
  return explanation.verdict.passes ? 0 : 3
}

/** Adds the states that a running gateway reports of the upstream's addresses. */
async function withAddresses(
  explanation: Explanation,
  askStatus: () => Promise<Status>
): Promise<Explanation> {
  const { verdict, maintenance, decisions } = explanation
  if (verdict.upstream === undefined || maintenance !== 'running') return explanation
  const { upstreams } = await askStatus()
  const lines = upstreams
    .filter(({ upstream }) => upstream === verdict.upstream)
    .map(({ address, state, inFlight }) => ({
      text: `${address} ${state}, ${inFlight} requests`,
      facts: { address, state, inFlight }
    }))
  const isUp = lines.some(({ facts }) => facts.state !== 'open' && facts.state !== 'unhealthy')
  const text = isUp || lines.length === 0 ? 'as they are now' : 'as they are now: none is up'
  const addresses: Decision = { step: 'addresses', result: 'info', text, lines }
  return {
    ...explanation,
    decisions: decisions.flatMap(each => (each.step === 'upstream' ? [each, addresses] : [each]))
  }
}

/** @throws UsageError */
function explained(
  config: LoadedConfig,
  { rest: [word = '', target = ''], values }: Invocation
): Explained {
  const { as, from = '127.0.0.1', data } = values
  const method = word.toUpperCase()
  if (!METHODS.includes(method) || method === 'CONNECT') {
    throw new UsageError(`There is no method "${word}".`)
  }
  if (!/^[\x21-\xff]+$/.test(target)) {
    throw new UsageError('A path must not contain blanks: write %20.')
  }
  if (isIP(String(from)) === 0) {
    throw new UsageError(`--from is an address such as 203.0.113.7, not "${String(from)}".`)
  }
  const who = whoIs(config, typeof as === 'string' ? as : undefined, listOf(values['role']))
  return {
    method,
    target,
    from: String(from),
    headers: anyHeadersOf(listOf(values['header'])),
    ...(typeof data === 'string' && { body: data }),
    ...(who && { who })
  }
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}

function whoIs(
  {
    gateway: {
      login: { sources }
    },
    users
  }: LoadedConfig,
  as: string | undefined,
  roles: readonly string[]
): Explained['who'] {
  if (as === undefined && roles.length === 0) return undefined
  const name = as ?? 'someone'
  for (const source of sources) {
    const fileUsers = source.kind === 'users-file' ? (users[source.file]?.users ?? {}) : {}
    const user = as !== undefined && Object.hasOwn(fileUsers, as) ? fileUsers[as] : undefined
    if (user === undefined || source.kind !== 'users-file') continue
    const identity = identityOf(name, user)
    const all = { ...identity, roles: [...new Set([...identity.roles, ...roles])] }
    const disabled = user.disabled ? '; disabled there: no new sign-in succeeds' : ''
    const description = `${name} of ${source.file} (${inRoles(all.roles)})${disabled}`
    return { source: sourceName(source), identity: all, description }
  }
  const back = sources.find(source => source.kind === 'upstream-login')
  const [first] = back === undefined ? sources : [back]
  const credential = back && {
    ...(back.token !== undefined && { token: '(token-of-the-session)' }),
    ...(back.cookies.length > 0 && {
      cookies: back.cookies.map(cookie => `${cookie}=(of-the-session)`).join('; ')
    })
  }
  const unknown =
    as !== undefined && roles.length === 0
      ? '; in no users file: name the back-end’s roles with --role'
      : ''
  const identity = { id: name, username: name, name, roles, profile: {} }
  return {
    source: first === undefined ? '' : sourceName(first),
    identity,
    ...(credential && { credential }),
    description: `${name} (${inRoles(roles)})${unknown}`
  }
}

function inRoles(roles: readonly string[]) {
  return roles.length === 0 ? 'no roles' : `role${roles.length > 1 ? 's' : ''} ${roles.join(', ')}`
}

const marks = {
  passes: ['✓', 'green'],
  refuses: ['✗', 'red'],
  info: ['·', 'cyan'],
  skipped: ['-', 'dim']
} as const

function formatExplanation(
  { request: { method, target, from, as }, verdict, decisions, ...sources }: Explanation,
  stream: Output
): string {
  const who = as === undefined ? '' : `, as ${printable(as)}`
  const title = `${paint('bold', printable(`${method} ${target}`), stream)} from ${from}${who}\n`
  const lines = decisions.map(each => formatDecision(each, stream)).join('')
  return `${title}\n${lines}\n${unknownNote(sources, stream)}${verdictIn(verdict, stream)}\n`
}

function unknownNote({ maintenance }: Pick<Explanation, 'maintenance'>, stream: Output): string {
  if (maintenance === 'running') return ''
  const text = `Unknown: operators’ maintenance. ${maintenance.unknown}`
  return `${paint('yellow', printableLines(text), stream)}\n`
}

function formatDecision({ step, result, text, at, lines = [] }: Decision, stream: Output): string {
  const [mark, colour] = marks[result]
  const below = lines
    .map(line => `${' '.repeat(14)}${printable(line.text)}${placeIn(line.at, stream)}\n`)
    .join('')
  const shown = result === 'skipped' ? paint('dim', printable(text), stream) : printable(text)
  return `${paint(colour, mark, stream)} ${step.padEnd(12)}${shown}${placeIn(at, stream)}\n${below}`
}

function placeIn(at: Location | undefined, stream: Output) {
  return at === undefined ? '' : `  ${paint('dim', `${at.file}:${at.line}`, stream)}`
}

function verdictIn(
  { passes, status, code, message, refusedBy, upstream, url }: Explanation['verdict'],
  stream: Output
): string {
  if (!passes) {
    const what = `${status ?? ''}${code === undefined ? '' : ` ${code}`}`
    const why = message === undefined ? '' : ` (${printable(message)})`
    return paint('red', `→ refused by ${refusedBy ?? 'the gateway'}: ${what}${why}`, stream)
  }
  return paint(
    'green',
    url === undefined
      ? `→ answered by the gateway: ${status ?? ''}`
      : `→ passes to ${upstream ?? ''}: ${printable(url)}`,
    stream
  )
}
