/**
 * Seals what replicas write for each other, with keys of their own derived from the session
 * secrets. Each text is sealed once with every secret, so that during a rotation those understand
 * each other that share one.
 */
import { createSeal, type Seal } from '../session/seal.ts'

export interface ReplicaSeal {
  /** @param context what the text is for: it does not open under another */
  readonly close: (context: string, text: string) => string
  readonly open: (context: string, sealed: string) => Opened | undefined
  /** Whether it looks sealed, but with secrets that are none of ours. */
  readonly isForeign: (sealed: string) => boolean
}

interface Opened {
  readonly text: string
  /** Of the secret that opened it, so that its sender can open the reply. */
  readonly seal: Seal
}

const purpose = 'replica-message'
const separator = ' '
/** More copies than this are not looked at. */
const maxCopies = 16

export function createReplicaSeal(secrets: readonly string[]): ReplicaSeal {
  const seals = secrets.map(secret => createSeal([secret], purpose))
  const [any] = seals
  if (any === undefined) throw new Error('a seal needs a secret')

  return {
    close: (context, text) => seals.map(seal => seal.close(context, text)).join(separator),
    open: (context, sealed) => {
      for (const copy of sealed.split(separator, maxCopies)) {
        for (const seal of seals) {
          const text = seal.open(context, copy)
          if (text !== undefined) return { text, seal }
        }
      }
      return undefined
    },
    isForeign: sealed =>
      sealed.split(separator, maxCopies).every(copy => seals.every(seal => seal.isForeign(copy)))
  }
}
