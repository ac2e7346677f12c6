/** Clients that never repeat a request: what fails is counted, with its reason. */
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { once } from 'node:events'

export interface Load {
  /** Ends the clients. @returns what became of all requests */
  readonly stop: () => Promise<{ readonly sent: number; readonly failures: readonly string[] }>
  readonly sent: () => number
}

interface LoadOptions {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Clients with a connection each, which they keep as long as the gateway does. */
  readonly kept: number
  /** Clients with a connection for each request. */
  readonly fresh: number
}

/** GET and POST by turns; each is expected to be answered 200. */
export function steadyLoad({ url, headers = {}, kept, fresh }: LoadOptions): Load {
  const end = new AbortController()
  let sent = 0
  const failures: string[] = []
  const send = async (agent: Agent | false, count: number) => {
    const method = count % 2 === 0 ? 'GET' : 'POST'
    const body = method === 'POST' ? JSON.stringify({ count }) : undefined
    sent++
    const asked = request(url, {
      agent,
      method,
      headers: {
        ...headers,
        ...(body !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body)
        })
      }
    })
    asked.end(body)
    const [response] = await once(asked, 'response')
    const answer = await text(response)
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${answer}`)
  }
  const client = async (agent: Agent | false) => {
    for (let count = 0; !end.signal.aborted; count++) {
      try {
        await send(agent, count)
      } catch (error) {
        failures.push((error as Error).message)
      }
    }
  }
  const agents = Array.from({ length: kept }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  const clients = [...agents, ...Array<false>(fresh).fill(false)].map(client)
  return {
    sent: () => sent,
    stop: async () => {
      end.abort()
      await Promise.all(clients)
      for (const agent of agents) agent.destroy()
      return { sent, failures }
    }
  }
}
