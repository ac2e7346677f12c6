/** The cookie's signature. */
import { Signer } from '@fastify/cookie'

const remembered = 10_000

/**
 * Computed once for each cookie instead of twice for each request. A signature of an older secret is given back
 * as it came: the plugin clears cookies whose signature it would make differently.
 */
export function rememberingSigner (secrets: readonly string[]) {
  const signer = new Signer([...secrets])
  type Unsigned = ReturnType<Signer['unsign']>
  const verified = new Map<string, Unsigned>()
  const signatures = new Map<string, string>()
  return {
    sign: (value: string) => signatures.get(value) ?? signer.sign(value),
    unsign: (signed: string): Unsigned => {
      const known = verified.get(signed)
      if (known !== undefined) return known
      const found = signer.unsign(signed)
      if (!found.valid) return found
      if (verified.size >= remembered) {
        verified.clear()
        signatures.clear()
      }
      verified.set(signed, found)
      signatures.set(found.value, signed)
      return found
    }
  }
}
