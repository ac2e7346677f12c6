/** Tells a slow gateway from a busy machine. */

const tickMs = 10
/** On an idle machine a timer is late by less. */
const pauseMs = 5

/**
 * Measures for how long this process stands still from now on, in all its pauses: a timer comes late
 * by them. A pause of the whole machine holds up the other processes of a test too.
 * @returns ends the measurement; milliseconds
 */
export function standstill(): () => number {
  let lateMs = 0
  let last = performance.now()
  const look = () => {
    const now = performance.now()
    const late = now - last - tickMs
    if (late > pauseMs) lateMs += late
    last = now
  }
  const timer = setInterval(look, tickMs)
  let isOver = false
  return () => {
    if (!isOver) look()
    isOver = true
    clearInterval(timer)
    return lateMs
  }
}
