import type { FoundRequests, KeptRequest } from '../observability/failures.ts'
import { duration, storyOf } from '../observability/request-story.ts'
import { printable } from '../observability/unprintable.ts'
import { type Columns, type Output, type Shown, tableOf } from './command.ts'
import { paint, stepLines } from './output.ts'

const maxStories = 10

const notFound =
  'No such request is kept. The failed, the slow and all but GET are; the access log has all.'

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
  const { requests, oldestAt, problem } = found
  const count = requests.length
  const stories = requests.map(each => storyText(each, stream))
  if (id !== undefined && count > 1) stories.unshift(`The id was used by ${count} requests.\n`)
  const notes = [
    count > 0 ? '' : notFound,
    ...(oldestAt === undefined ? [] : [`The oldest request that is kept began at ${oldestAt}.`]),
    ...(problem === undefined ? [] : [`${problem}.`])
  ]
  const rows = count > maxStories ? tableOf(requests, columns) : { painted: stories.join('\n') }
  return { ...rows, text: notes.join('\n'), code: count > 0 ? 0 : 3 }
}

function storyText(request: KeptRequest, stream: Output): string {
  const { method, path, status, ms } = request
  const head = printable(`${method} ${path} → ${status}, ${duration(ms)}`)
  return [paint('bold', head, stream), ...stepLines(storyOf(request)), ''].join('\n')
}
