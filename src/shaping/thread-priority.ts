/** The priority of a thread that does long work, below that of the event loop. */
import { readlinkSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'

/** Beside a busy event loop a thread that is so much nicer gets a tenth of a core (man 7 sched). */
const nicer = 10

const threadLink = /^(\d+)\/task\/(\d+)$/

/**
 * Lowers the priority of the calling thread: where cores are few, the event loop gets one at once
 * when a request arrives, not after the thread's turn. On Linux, where threads have priorities of
 * their own; elsewhere it does nothing.
 * perf: beside bodies of 10 MB others' p99 is 13 ms, not 18, and 81, not 185, where other programs
 * are busy too (2 cores, bench/long-bodies.ts by turns; of 2 MB no difference was measured);
 * without it: the priority of the process.
 */
export function yieldToEventLoop(): void {
  try {
    const [, pid, thread] = threadLink.exec(readlinkSync('/proc/thread-self')) ?? []
    // A /proc of another namespace has other ids.
    if (Number(pid) !== process.pid) return
    const niceness = getPriority(Number(thread)) + nicer
    setPriority(Number(thread), Math.min(niceness, constants.priority.PRIORITY_LOW))
  } catch {
    // The system has no such link, or forbids it: the thread shares as others do.
  }
}
