import type { FoundRequests, KeptRequest } from '../observability/failures.ts'
import { formatMs, storyOf } from '../observability/request-story.ts'
import { printable } from '../observability/unprintable.ts'
import { askAndPrint } from './ask.ts'
import { CommandError, type Invocation, type Output } from './command.ts'
import { type Columns, paint, stepLines, table } from './output.ts'

const maxStories = 10
const defaultLast = 5

const notFound =
  'No request of this id is kept. Kept are those that failed, took more than a second or were no ' +
  'GET; the access log has all.\n'

type Values = Readonly<Record<string, string>>

export async function why(invocation: Invocation<Values>): Promise<number> {
  const { rest, values } = invocation
  const [id] = rest
  const inWords = (found: FoundRequests, stream: Output) => textOf(found, id, stream)
  const { requests } = await askAndPrint(invocation, [pathOf(id, values)], inWords)
  return requests.length > 0 ? 0 : 3
}

function pathOf(id: string | undefined, values: Values): string {
  if (id === undefined) {
    const query = new URLSearchParams({ last: String(defaultLast), ...values })
    return `/ops/api/requests?${query.toString()}`
  }
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(id)) {
    throw new CommandError('A request id has up to 64 letters, digits, and _ . -')
  }
  return `/ops/api/requests?id=${id}`
}

const columns: Columns<KeptRequest> = {
  AT: ({ at }) => at,
  REQUEST: ({ requestId }) => requestId,
  USER: ({ user = '' }) => user,
  WHAT: ({ method, path }) => `${method} ${path}`,
  STATUS: ({ status }) => String(status),
  CODE: ({ code = '' }) => code,
  TIME: ({ ms }) => formatMs(ms)
}

function textOf(found: FoundRequests, id: string | undefined, stream: Output): string {
  const { requests, hasMore, oldestAt, problem } = found
  const parts: string[] = []
  if (requests.length === 0) parts.push(id === undefined ? 'No such request is kept.\n' : notFound)
  if (id !== undefined && requests.length > 1) {
    parts.push(`The id was used by ${requests.length} requests.\n\n`)
  }
  if (requests.length > maxStories) parts.push(table(requests, columns, stream))
  else parts.push(requests.map(each => storyText(each, stream)).join('\n'))
  if (id !== undefined && hasMore) parts.push('There are more requests of this id.\n')
  if (requests.length > 0) parts.push('\n')
  if (oldestAt !== undefined) parts.push(`The oldest request that is kept began at ${oldestAt}.\n`)
  if (problem !== undefined) parts.push(`${problem}.\n`)
  return parts.join('')
}

export function storyText(request: KeptRequest, stream: Output): string {
  const { method, path, status, ms } = request
  const head = printable(`${method} ${path} → ${status}, ${formatMs(ms)}`)
  return [paint('bold', head, stream), ...stepLines(storyOf(request)), ''].join('\n')
}
