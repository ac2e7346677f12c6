/** Credential source: an LDAP directory, whose servers are asked in turn. */
import type { LdapConfig } from '../../config/schema/login.ts'
import { GatewayError } from '../../errors/errors.ts'
import { Slots } from '../../limits/slots.ts'
import { steadyNow } from '../../steady-clock.ts'
import type { PasswordSource, SignInAttempt, SignInResult } from '../credential-source.ts'

const timeoutMs = 10_000
const maxRunning = 20
const maxWaiting = 100

/** @param onAmbiguous for a name of several entries: nobody knows whose password would be right */
export function createLdap(
  name: string,
  directory: LdapConfig,
  onAmbiguous: (username: string) => void
): PasswordSource {
  const { urls } = directory
  const slots = new Slots(maxRunning, maxWaiting)
  let current = 0

  async function verify(attempt: SignInAttempt): Promise<SignInResult> {
    const end = steadyNow() + timeoutMs
    return await slots.run(async () => {
      // Here, since the library takes 35 ms to load.
      const { judge } = await import('./directory.ts')
      const first = current
      const faults: string[] = []
      for (let tried = 0; tried < urls.length; tried++) {
        const index = (first + tried) % urls.length
        const url = urls[index] ?? ''
        // A silent server leaves their share of the time to the others.
        const withinMs = Math.max(1, Math.ceil((end - steadyNow()) / (urls.length - tried)))
        try {
          const result = await judge(directory, { url, withinMs }, { ...attempt, onAmbiguous })
          current = index
          return result
        } catch (error) {
          faults.push(`${url}: ${(error as Error).message}`)
        }
      }
      const cause = faults.join('; ')
      throw new GatewayError('upstream.refused', { status: 503, cause })
    })
  }

  return {
    name,
    // A bind without a password succeeds for anybody (RFC 4513 §5.1.2).
    verify: async attempt => (attempt.password === '' ? { vouched: false } : await verify(attempt))
  }
}
