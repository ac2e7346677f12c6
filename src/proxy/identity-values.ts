/** What headers tell upstreams of a session. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { textAt } from '../json/values.ts'
import { identityKey } from '../session/identity-key.ts'
import type { Identity, Session } from '../session/record.ts'

interface IdentityValues {
  readonly id: string
  readonly prefixedId: string
  readonly source: string
  readonly username: string
  readonly roles: string
}

/** Built once for each cached session. */
const identityCache = new WeakMap<Identity, IdentityValues>()

function identityValues({ source, identity }: Session): IdentityValues {
  const cached = identityCache.get(identity)
  if (cached !== undefined) return cached
  const values = {
    id: headerValue(identity.id),
    prefixedId: headerValue(identityKey({ source, identity })),
    source: headerValue(source),
    username: headerValue(identity.username),
    roles: identity.roles.map(role => headerValue(role).replaceAll(',', '%2C')).join(',')
  }
  identityCache.set(identity, values)
  return values
}

/** The headers of `identity` for a session. */
export function identityHeaders(
  session: Session,
  identity: GatewayConfig['identity']
): Record<string, string> {
  const values = identityValues(session)
  return {
    [identity.id]: identity.prefix ? values.prefixedId : values.id,
    ...(identity.source !== undefined && { [identity.source]: values.source }),
    [identity.username]: values.username,
    [identity.roles]: values.roles
  }
}

interface ProfileValue {
  /** Of the header. */
  readonly name: string
  /** @returns undefined where the profile has no text, number or boolean there */
  readonly valueOf: (session: Session) => string | undefined
}

const placeholder = /^\{profile\.([A-Za-z0-9_.-]+)\}$/

/** Of the fixed headers of an upstream those whose value is a member of the user's profile. */
export function profileValues(headers: Readonly<Record<string, string>> = {}): ProfileValue[] {
  return Object.entries(headers).flatMap(([name, written]) => {
    const path = placeholder.exec(written)?.[1]
    if (path === undefined) return []
    const valueOf = ({ identity }: Session) => {
      const text = textAt(identity.profile, path)
      return text === undefined ? undefined : headerValue(text)
    }
    return [{ name: name.toLowerCase(), valueOf }]
  })
}

/** Whether a fixed header is one of `profileValues`. */
export const isProfileValue = (written: string): boolean => placeholder.test(written)

/**
 * Printable ASCII as it is, everything else percent-encoded, also blanks at the ends, which a
 * header would lose: a name must neither break a header nor become another name.
 */
function headerValue(value: string): string {
  return /^(?! )[\x20-\x24\x26-\x7e]*(?<! )$/.test(value)
    ? value
    : encodeURIComponent(value.toWellFormed())
}
