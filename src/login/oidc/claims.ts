import type { OidcConfig } from '../../config/schema/login.ts'
import { GatewayError } from '../../errors/errors.ts'
import { invalid } from '../../proxy/response.ts'
import type { Identity } from '../../session/types.ts'
import { isWritable, userFrom, valuesAt } from '../login-response.ts'

export type Claims = Readonly<Record<string, unknown>>

const notAllowed = 'Your account may not use this console. Please ask your administrator.'

/** @throws GatewayError `login.blocked` by `require`; `upstream.invalid` without id or groups */
export function identityOf(claims: Claims, config: Pick<OidcConfig, 'user' | 'require'>): Identity {
  const { user, require } = config
  const at = (path = '') => valuesAt(claims, path.split('.')).flat()
  for (const path of [user.roles, ...Object.keys(require)]) {
    if (path !== undefined && isElsewhere(claims, path)) {
      throw invalid(
        `the provider leaves out "${path}", since the user has too many: let it send only those ` +
          'of this application, or use application roles'
      )
    }
  }
  const told = userFrom(user, path => at(path).filter(isExact))
  if (told === undefined) throw invalid(`the provider tells no "${user.id}", or no exact one`)
  for (const [path, values] of Object.entries(require)) {
    // By text: Amazon Cognito tells `email_verified` as "true".
    if (at(path).some(value => values.map(String).includes(String(value)))) continue
    const cause = `"${path}" of ${told.username} has none of the values of \`require\``
    throw new GatewayError('login.blocked', { message: notAllowed, cause })
  }
  const profile = Object.fromEntries(
    user.profile.flatMap(claim => (Object.hasOwn(claims, claim) ? [[claim, claims[claim]]] : []))
  )
  if (!isWritable(profile)) throw invalid('a claim of `user.profile` is nested too deeply')
  return { ...told, profile }
}

/** Larger ids may have lost digits when they were parsed, and be those of several users. */
function isExact(value: unknown): boolean {
  return typeof value !== 'number' || Number.isSafeInteger(value)
}

/** Whether a claim is only a link (OpenID Connect Core 1.0 §5.6.2), as over 200 groups of Entra. */
function isElsewhere(claims: Claims, path: string): boolean {
  const [name = ''] = path.split('.')
  const { _claim_names: names } = claims
  return typeof names === 'object' && names !== null && Object.hasOwn(names, name)
}
