/** Asks the credential sources, in their order, who vouches for a password. */
import type { FastifyRequest } from 'fastify'
import type {
  ConsoleRequest,
  CredentialSource,
  Refusal,
  SignInAttempt,
  SignInResult
} from '../../login/credential-source.ts'
import { keepCookies } from '../../proxy/cookie-header.ts'

/** A user, and the source that vouches for its password. */
export interface VouchedUser {
  readonly source: string
  readonly result: Extract<SignInResult, { readonly vouched: true }>
}

interface NamedRefusal extends Refusal {
  /** The name of the credential source. */
  readonly source: string
}

/** No source vouches, and one did not answer: that is not a refusal. */
export interface Undecided {
  readonly failure: unknown
  /** Whether another source refused the password: then a guess was evaluated. */
  readonly wasEvaluated: boolean
}

/**
 * The refusal of all sources: the first that tells more than a wrong password, else the first. A
 * wrong captcha at one source does not end the search. If another source then refuses the
 * password, a guess was evaluated, so the challenge counts as refused at once (`maxChallenges` 0).
 */
export async function firstVouching(
  sources: readonly CredentialSource[],
  attempt: SignInAttempt
): Promise<VouchedUser | NamedRefusal | Undecided> {
  const refusals: NamedRefusal[] = []
  let failure: unknown
  for (const source of sources) {
    try {
      const result = await source.verify(attempt)
      if (result.vouched) return { source: source.name, result }
      refusals.push({ ...result, source: source.name })
      if (result.isFinal === true) break
    } catch (error) {
      failure ??= error
    }
  }
  const telling = refusals.find(({ kind }) => kind !== undefined)
  const wasEvaluated = refusals.some(({ kind, isUnknown }) => kind !== 'challenge' && !isUnknown)
  if (telling === undefined && failure !== undefined) return { failure, wasEvaluated }
  return {
    vouched: false,
    source: '',
    ...(telling ?? refusals[0]),
    ...(wasEvaluated && { maxChallenges: 0 })
  }
}

/** The parts of the console's request that sources may pass on. */
export function consoleRequest({ headers, query, server }: FastifyRequest): ConsoleRequest {
  const { cookie = '' } = headers
  return {
    headers,
    query: query as Record<string, unknown>,
    cookie: (upstream, name) => {
      const sealed = server.gateway.sealedCookies.get(upstream)
      if (sealed?.names.has(name) !== true) return keepCookies(cookie, [name])
      return sealed.open(cookie, [name]).join('')
    }
  }
}
