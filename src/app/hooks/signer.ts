/** The cookie's signature. */
import { Signer } from '@fastify/cookie'
import { ownText, recentlyUsed } from '../../session/recently-used.ts'

const maxCookies = 10_000

/**
 * Computed once for each cookie instead of twice for each request. A signature of an older secret
 * is given back as it came: the plugin clears cookies whose signature it would make differently.
 */
export function createCachedSigner(secrets: readonly string[]) {
  const signer = new Signer([...secrets])
  type Unsigned = ReturnType<Signer['unsign']>
  const verified = recentlyUsed<Unsigned>(maxCookies)
  const signatures = recentlyUsed<string>(maxCookies)
  return {
    sign: (value: string) => signatures.get(value) ?? signer.sign(value),
    unsign: (signed: string): Unsigned => {
      const cached = verified.get(signed)
      if (cached !== undefined) return cached
      const unsigned = signer.unsign(signed)
      if (!unsigned.valid) return unsigned
      const kept = { ...unsigned, value: ownText(unsigned.value) }
      verified.set(signed, kept)
      signatures.set(kept.value, ownText(signed))
      return kept
    }
  }
}
