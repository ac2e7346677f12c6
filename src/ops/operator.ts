export interface Operator {
  /** The user name; `operator` for whoever has the secret, `local` for commands on the machine. */
  readonly name: string
  readonly via: 'secret' | 'socket' | 'session'
  /** The credential source, of a user who signed in by name. */
  readonly source?: string | undefined
  /** The end of the session, in milliseconds since the epoch. */
  readonly until?: number
}

export const secretOperator: Operator = { name: 'operator', via: 'secret' }

/** For every request over the Unix socket, which only the gateway's user can open. */
export const localOperator: Operator = { name: 'local', via: 'socket' }

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on all paths but the open ones. */
    operator: Operator | undefined
  }
  interface FastifyContextConfig {
    /** Whether the operators' listener answers it without an operator. */
    isOpen?: boolean
    /** Whether clients that are no browser may call it by any host name: scrapers and probes. */
    isProbe?: boolean
  }
}
