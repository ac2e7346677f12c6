/** The cookie's signature. */
import { Signer } from '@fastify/cookie'
import { ownText, recentlyUsed } from '../../session/recently-used.ts'

const remembered = 10_000

/**
 * Computed once for each cookie instead of twice for each request. A signature of an older secret
 * is given back as it came: the plugin clears cookies whose signature it would make differently.
 */
export function rememberingSigner(secrets: readonly string[]) {
  const signer = new Signer([...secrets])
  type Unsigned = ReturnType<Signer['unsign']>
  const verified = recentlyUsed<Unsigned>(remembered)
  const signatures = recentlyUsed<string>(remembered)
  return {
    sign: (value: string) => signatures.get(value) ?? signer.sign(value),
    unsign: (signed: string): Unsigned => {
      const known = verified.get(signed)
      if (known !== undefined) return known
      const found = signer.unsign(signed)
      if (!found.valid) return found
      const own = { ...found, value: ownText(found.value) }
      verified.set(signed, own)
      signatures.set(own.value, ownText(signed))
      return own
    }
  }
}
