import type { FoundRequests, KeptRequest } from '../observability/failures.ts'
import { duration, storyOf } from '../observability/request-story.ts'
import { printable } from '../observability/unprintable.ts'
import { type Columns, type Output, type Shown, tableOf } from './command.ts'
import { paint, stepLines, tableText } from './output.ts'

const maxStories = 10

const notFound =
  'No request of this id is kept. The failed, the slow and all but GET are; the access log has all.\n'

const columns: Columns<KeptRequest> = {
  AT: ({ at }) => at,
  REQUEST: ({ requestId }) => requestId,
  USER: ({ user = '' }) => user,
  WHAT: ({ method, path }) => `${method} ${path}`,
  STATUS: ({ status }) => String(status),
  CODE: ({ code = '' }) => code,
  TIME: ({ ms }) => duration(ms)
}

export function requestsOf(found: FoundRequests, id: string | undefined, stream: Output): Shown {
  const { requests, hasMore, oldestAt, problem } = found
  const parts: string[] = []
  if (requests.length === 0) parts.push(id === undefined ? 'No such request is kept.\n' : notFound)
  if (id !== undefined && requests.length > 1) {
    parts.push(`The id was used by ${requests.length} requests.\n\n`)
  }
  if (requests.length > maxStories) parts.push(tableText(tableOf(requests, columns), stream))
  else parts.push(requests.map(each => storyText(each, stream)).join('\n'))
  if (id !== undefined && hasMore) parts.push('There are more requests of this id.\n')
  if (requests.length > 0) parts.push('\n')
  if (oldestAt !== undefined) parts.push(`The oldest request that is kept began at ${oldestAt}.\n`)
  if (problem !== undefined) parts.push(`${problem}.\n`)
  return { painted: parts.join(''), code: requests.length > 0 ? 0 : 3 }
}

function storyText(request: KeptRequest, stream: Output): string {
  const { method, path, status, ms } = request
  const head = printable(`${method} ${path} → ${status}, ${duration(ms)}`)
  return [paint('bold', head, stream), ...stepLines(storyOf(request)), ''].join('\n')
}
