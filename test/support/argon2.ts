/** Node's argon2 under watch: what was computed, and not before it may. */
import crypto, { type Argon2Parameters } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

export function watchArgon2(cleanUp: (undo: () => unknown) => void) {
  const { argon2 } = crypto
  const costs: object[] = []
  let running = 0
  let held: Array<() => void> | undefined
  const watched = (
    algorithm: crypto.Argon2Algorithm,
    parameters: Argon2Parameters,
    done: (error: Error | null, key: Buffer) => void
  ) => {
    const { message: _message, nonce, ...cost } = parameters
    costs.push({ algorithm, ...cost, nonceLength: (nonce as Buffer).length })
    running++
    const begin = () =>
      argon2(algorithm, parameters, (error, key) => {
        running--
        done(error, key)
      })
    if (held === undefined) begin()
    else held.push(begin)
  }
  const put = (used: typeof argon2) => {
    crypto.argon2 = used
    syncBuiltinESMExports()
  }
  put(watched as typeof argon2)
  const release = () => {
    const waiting = held ?? []
    held = undefined
    for (const begin of waiting) begin()
  }
  cleanUp(() => {
    release()
    put(argon2)
  })
  return {
    /** What each computation costs, but for the password's length; from the last time on that this was asked. */
    costs: () => costs.splice(0),
    /** How many are running, or held back. */
    running: () => running,
    /** From now on none begins until `release`. */
    hold: () => {
      held ??= []
    },
    release
  }
}
