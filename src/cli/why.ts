/** `why`: what became of a request, at whichever replica. */
import { jsonText } from './output.ts'
import type { FoundRequests } from '../observability/failures.ts'
import { askAdmin } from './admin-client.ts'
import { CommandError, type Invocation, type Output } from './command.ts'
import { formatKept, formatRequest, formatRequests } from './why-text.ts'

/** More requests are shown as one line each. */
const maxStories = 10
const defaultLast = 5

const notFound =
  'No request of this id is kept. Kept are those that failed, took more than a second or were no ' +
  'GET; the access log has all.'

interface Values {
  readonly user?: string
  readonly last?: string
  readonly status?: string
  readonly route?: string
}

export async function why({
  gateway,
  rest: [id],
  values,
  json,
  io
}: Invocation<Values>): Promise<number> {
  const response = (await askAdmin(gateway, pathOf(id, values))) as unknown as FoundRequests
  if (json) io.stdout.write(jsonText(response))
  else io.stdout.write(format(response, id, io.stdout))
  return response.requests.length > 0 ? 0 : 3
}

function pathOf(id: string | undefined, values: Values): string {
  if (id === undefined) {
    const query = new URLSearchParams({ last: String(defaultLast), ...values })
    return `/ops/api/requests?${query.toString()}`
  }
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(id)) {
    throw new CommandError('A request id has up to 64 letters, digits, and _ . -')
  }
  return `/ops/api/requests/${id}`
}

function format(response: FoundRequests, id: string | undefined, stream: Output): string {
  const { requests, hasMore } = response
  if (requests.length === 0) {
    const what = id === undefined ? 'No such request is kept.' : notFound
    return `${what}\n${formatKept(response)}`
  }
  const twice =
    id !== undefined && requests.length > 1
      ? `The id was used by ${requests.length} requests.\n\n`
      : ''
  const stories =
    requests.length > maxStories
      ? formatRequests(requests, stream)
      : requests.map(each => formatRequest(each, stream)).join('\n')
  const rest = hasMore && id !== undefined ? 'There are more requests of this id.\n' : ''
  return `${twice}${stories}${rest}\n${formatKept(response)}`
}
