/** For what a pause of the machine can spoil: it spoils one look, a fault all of them. */
import { standstill } from './machine.ts'

const maxLooks = 10
const spoiltByMs = 250

/**
 * Looks again, at most nine times, where a look failed, or saw what is not sound, and the process
 * stood still meanwhile. A process that ran all the time is taken at its word.
 * @returns what was seen last
 */
export async function lookAgain<T>(
  look: () => Promise<T>,
  isSound: (seen: T) => boolean
): Promise<T> {
  for (let looks = 1; ; looks++) {
    const stoodStillMs = standstill()
    const mayBeSpoilt = () => stoodStillMs() >= spoiltByMs && looks < maxLooks
    try {
      const seen = await look()
      if (!mayBeSpoilt() || isSound(seen)) return seen
    } catch (error) {
      if (!mayBeSpoilt()) throw error
    }
  }
}
