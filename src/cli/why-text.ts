/** Requests in plain words. Names and paths come from clients, so all text is escaped. */
import type { FoundRequests, KeptRequest as Request } from '../observability/failures.ts'
import { formatMs, storyOf } from '../observability/request-story.ts'
import { printable } from '../observability/unprintable.ts'
import { table } from './table.ts'
import type { Output } from './command.ts'
import { paint } from './output.ts'

/** The whole story of one request. */
export function formatRequest(request: Request, stream: Output): string {
  const { method, path, status, ms } = request
  const head = `${method} ${path} → ${status}, ${formatMs(ms)}`
  const steps = storyOf(request)
  const width = Math.max(...steps.map(({ name }) => name.length))
  const lines = steps.map(({ name, text }, index) => {
    const isRepeated = steps[index - 1]?.name === name
    return `  ${(isRepeated ? '' : name).padEnd(width)}  ${printable(text)}\n`
  })
  return `${paint('bold', printable(head), stream)}\n${lines.join('')}`
}

/** One line each. */
export function formatRequests(requests: readonly Request[], stream: Output): string {
  const rows = requests.map(({ at, requestId, user = '', method, path, code = '', ...request }) => [
    at,
    requestId,
    user,
    `${method} ${path}`,
    String(request.status),
    code,
    formatMs(request.ms)
  ])
  return table([['AT', 'REQUEST', 'USER', 'WHAT', 'STATUS', 'CODE', 'TIME'], ...rows], stream)
}

/** A note on what is kept. */
export function formatKept({ oldestAt, problem }: FoundRequests): string {
  const kept =
    oldestAt === undefined ? '' : `The oldest request that is kept began at ${oldestAt}.\n`
  return `${kept}${problem === undefined ? '' : `${problem}.\n`}`
}
