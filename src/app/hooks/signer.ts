/** Signs and verifies cookies, with a cache. */
import { Signer } from '@fastify/cookie'
import { ownText, recentlyUsed } from '../../bounded-map.ts'

const maxCookies = 10_000

/**
 * Each cookie is verified once instead of twice per request. `sign` returns an older secret's
 * signature as it came: the plugin clears cookies whose signature differs from its own.
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
