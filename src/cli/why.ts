/** `why`: the story of a request, from a running gateway and all its workers and replicas. */
import { jsonText } from './output.ts'
import type { RequestsResponse } from '../admin/requests.ts'
import { askAdmin } from './admin-client.ts'
import { type Command, CommandError, type Invocation } from './command.ts'
import { formatKept, formatRequest, formatRequests } from './why-text.ts'

/** More requests are shown as one line each. */
const maxStories = 10
const defaultLast = 5

const notFound =
  'No request of this id is remembered: another gateway answered it, it was overwritten, or it ' +
  'never reached a gateway.'

export const why: Command = {
  summary: 'tell the story of a request: what was decided, by what, and what to do about it',
  ways: [
    { words: 'REQUEST-ID', takes: ['json'] },
    { needs: ['user'], takes: ['last', 'status', 'route', 'json'] },
    { needs: ['last'], takes: ['status', 'route', 'json'] }
  ],
  details: `
The id is in X-Request-Id of every response, in the log and in error bodies. Every
process remembers its last requests (ops.requests in gateway.yaml) and those that
run; with Redis all replicas are asked. Nothing is kept of queries, bodies, header
values and tokens.

Up to ${maxStories} requests are told in full, the newest first; more have one line each.

Examples:
  console-gateway why 0b9d5bd2-6f0f-4d6c-8f0e-2d0a2f6a1c11
  console-gateway why --user alice --status failed
  console-gateway why --last 50
Exit codes: 1 if no gateway answers, 3 if no request was found.`,
  options: {
    user: { type: 'string', value: 'NAME', description: 'requests of this user name or id' },
    last: {
      type: 'string',
      value: 'N',
      description: `the newest N, at most 500 (default: ${defaultLast})`
    },
    status: { type: 'string', value: 'STATUS', description: 'failed, running, 4xx or 404' },
    route: { type: 'string', value: 'ROUTE', description: 'requests of this route' }
  },
  asksGateway: true,
  run: async ({ gateway, rest: [id], values, json }) => {
    const response = (await askAdmin(gateway, pathOf(id, values))) as unknown as RequestsResponse
    if (json) process.stdout.write(jsonText(response))
    else process.stdout.write(format(response, id))
    return response.requests.length > 0 ? 0 : 3
  }
}

function pathOf(id: string | undefined, values: Invocation['values']): string {
  if (id === undefined) {
    const query = new URLSearchParams([['last', String(defaultLast)]])
    for (const name of ['user', 'last', 'status', 'route']) {
      if (values[name] !== undefined) query.set(name, String(values[name]))
    }
    return `/ops/api/requests?${query.toString()}`
  }
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(id)) {
    throw new CommandError('A request id has up to 64 letters, digits, and _ . -')
  }
  return `/ops/api/requests/${id}`
}

function format(response: RequestsResponse, id: string | undefined): string {
  const { requests, hasMore } = response
  if (requests.length === 0) {
    const what = id === undefined ? 'No such request is remembered.' : notFound
    return `${what}\n${formatKept(response)}`
  }
  const twice =
    id !== undefined && requests.length > 1
      ? `The id was used by ${requests.length} requests.\n\n`
      : ''
  const stories =
    requests.length > maxStories ? formatRequests(requests) : requests.map(formatRequest).join('\n')
  const rest = hasMore && id !== undefined ? 'There are more requests of this id.\n' : ''
  return `${twice}${stories}${rest}\n${formatKept(response)}`
}
