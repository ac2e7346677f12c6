/** What headers tell upstreams of a session. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { textAt } from '../json/values.ts'
import { identityKey, type Session } from '../session/types.ts'

/** The headers of `identity` for a session. */
export function identityHeaders(
  session: Session,
  names: GatewayConfig['identity']
): Record<string, string> {
  const { source, identity } = session
  const roles = identity.roles.map(role => headerValue(role).replaceAll(',', '%2C'))
  return {
    [names.id]: headerValue(names.prefix ? identityKey(session) : identity.id),
    ...(names.source !== undefined && { [names.source]: headerValue(source) }),
    [names.username]: headerValue(identity.username),
    [names.roles]: roles.join(',')
  }
}

const placeholder = /^\{profile\.([A-Za-z0-9_.-]+)\}$/

/** Of the fixed headers of an upstream those whose value is a member of the user's profile. */
export function profileValues(headers: Readonly<Record<string, string>> = {}) {
  return Object.entries(headers).flatMap(([name, written]) => {
    const path = placeholder.exec(written)?.[1]
    if (path === undefined) return []
    // Undefined where the profile has no text, number or boolean there.
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
