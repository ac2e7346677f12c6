/** `explain`: what the gateway decides about a request, and where config says so. */
import { isIP } from 'node:net'
import { styleText } from 'node:util'
import { loadConfig, type LoadedConfig } from '../config/load.ts'
import type { Count } from '../endpoints/ops-limits.ts'
import { explain as explanationOf, type Explanation, type Question, type Step } from '../explanation.ts'
import type { Identity } from '../session/record.ts'
import { type Command, CommandError, type Given, UsageError } from './command.ts'
import { askOps } from './ops-client.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export const explain: Command = {
  summary: 'say what would become of a request, decision by decision, and where config says so',
  usage: ['METHOD PATH [--as USER] [--role R] [--from IP] [--header "name: value"] [--json]'],
  details: `
The request goes through the gateway's own code with this config, in this process;
no back-end is asked. PATH may have a query. Who asks is nobody, a user of the
users files (--as), or anyone with some roles (--role, may be given again). How the
limits stand is asked of the running gateway, where there is one.

Examples:
  console-gateway explain GET /api/currentUser --as alice
  console-gateway explain DELETE /api/orders/7 --role viewer --from 203.0.113.9
  console-gateway explain POST /api/orders --role admin --header "origin: https://other.example"
Exit codes: 0 it passes, 3 it is refused.`,
  options: {
    as: { type: 'string', value: 'USER', description: 'who asks, by the name they sign in with' },
    role: { type: 'string', multiple: true, value: 'R', description: 'somebody with this role asks; with --as, beside those of the users file' },
    from: { type: 'string', value: 'IP', description: 'from which address (default: 127.0.0.1)' },
    header: { type: 'string', multiple: true, value: 'FIELD', description: 'a header field of the request, such as "origin: https://…"' }
  },
  run: async given => {
    const config = loadConfig(given.config, process.env)
    const { question, note } = questionOf(config, given)
    const decided = await explanationOf(config, question)
    const { counts, unknown } = await countsOf(given.config, question, decided)
    const over = [...counts.values()].find(({ exceeded, limit }) => exceeded && config.limits.limits[limit]?.mode === 'enforce')
    const explanation = over === undefined || !decided.passes ? decided : { ...decided, passes: false, verdict: `refused now: 429 limit.exceeded, by ${over.limit}; free again in ${Math.ceil(over.retryMs / 1000)} s` }
    if (given.json) process.stdout.write(`${JSON.stringify({ request: { method: question.method, path: question.url, from: question.address, ...(question.identity !== undefined && { as: question.identity.username, roles: question.identity.roles }) }, ...explanation, steps: explanation.steps.map(step => ({ ...step, ...countOf(step, counts) })), ...(unknown !== undefined && { countsUnknown: unknown }) }, null, 2)}\n`)
    else process.stdout.write(inWords(question, explanation, counts, [note, unknown].filter(each => each !== undefined)))
    return explanation.passes ? 0 : 3
  }
}

function questionOf (config: LoadedConfig, { rest: [method = '', url = '', ...more], values }: Given): { readonly question: Question, readonly note: string | undefined } {
  const { as, role = [], from: address = '127.0.0.1', header = [] } = values as { as?: string, role?: string[], from?: string, header?: string[] }
  if (more.length > 0 || !methods.includes(method.toUpperCase())) throw new UsageError(`Name a method (${methods.join(', ')}) and a path.`)
  if (!url.startsWith('/')) throw new UsageError('The path begins with /.')
  if (isIP(address) === 0) throw new UsageError('--from is an address.')
  const headers = Object.fromEntries(header.map(field => {
    const [, name = '', value = ''] = /^([^:\s]+):\s*(.*)$/.exec(field) ?? []
    if (name === '') throw new UsageError('--header is a field such as "origin: https://console.example.com".')
    return [name.toLowerCase(), value]
  }))
  const common = { method: method.toUpperCase(), url, address, headers }
  if (as === undefined && role.length === 0) return { question: common, note: undefined }
  const known = as === undefined ? undefined : Object.values(config.users).map(({ users }) => Object.hasOwn(users, as) ? users[as] : undefined).find(user => user !== undefined)
  const identity: Identity = { id: known?.id ?? as ?? 'somebody', username: as ?? 'somebody', name: known?.name ?? as ?? 'somebody', roles: [...known?.roles ?? [], ...role], profile: known?.profile ?? {} }
  const note = as !== undefined && known === undefined ? `No users file knows ${as}: taken as the id, with the roles of --role.` : undefined
  return { question: { ...common, identity }, note }
}

interface Counts {
  readonly counts: ReadonlyMap<string, Count>
  /** Why they are not known. */
  readonly unknown?: string
}

async function countsOf (folder: string, { method, address, identity }: Question, { route, steps }: Explanation): Promise<Counts> {
  if (!steps.some(({ limit }) => limit !== undefined)) return { counts: new Map() }
  try {
    const { counts } = await askOps(folder, '/limits/counts', { route, method, address, ...(identity !== undefined && { user: identity.id, roles: identity.roles }) }) as { counts: Count[] }
    return { counts: new Map(counts.map(count => [count.limit, count])) }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    return { counts: new Map(), unknown: `How the limits stand is not known. ${error.message}` }
  }
}

function countOf ({ limit }: Step, counts: Counts['counts']): { readonly now?: Omit<Count, 'limit'> } {
  const count = counts.get(limit ?? '')
  if (count === undefined) return {}
  const { limit: _, ...now } = count
  return { now }
}

function inWords ({ method, url, identity, address }: Question, { steps, passes, verdict }: Explanation, counts: Counts['counts'], notes: readonly string[]): string {
  const style = (how: Parameters<typeof styleText>[0], text: string) => styleText(how, text, { stream: process.stdout })
  const rows = steps.map(step => {
    const { now } = countOf(step, counts)
    const standing = now === undefined ? '' : now.exceeded ? `; over, free again in ${Math.ceil(now.retryMs / 1000)} s` : `; ${now.remaining} left now`
    return { ...step, says: step.says + standing, bad: step.refuses === true || now?.exceeded === true }
  })
  const width = Math.max(...rows.map(({ about }) => about.length))
  const lines = rows.map(({ about, says, at, bad }) => `  ${style(bad ? 'red' : 'green', bad ? '✗' : '✓')} ${about.padEnd(width)}  ${says}${at === undefined ? '' : style('dim', `  ${at}`)}\n`)
  const who = identity === undefined ? 'nobody signed in' : `${identity.username} (${identity.roles.join(', ') || 'no roles'})`
  return `${method} ${url}, ${who}, from ${address}\n\n${lines.join('')}\n${style(passes ? 'green' : 'red', verdict)}\n${notes.map(note => `${note}\n`).join('')}`
}
