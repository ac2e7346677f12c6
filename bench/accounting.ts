/** CPU time and memory of a process, read from the kernel. */
import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts /proc/PID/stat in hundredths of a second, whatever the kernel's own clock is. */
const microsPerTick = 10_000

/** CPU time of a process, its threads and its children, user and system, in microseconds. */
export function cpuMicros(pid: number): number {
  let total = 0
  for (const id of [pid, ...descendants(pid)]) total += ownMicros(id)
  return total
}

function ownMicros(pid: number): number {
  try {
    // The scheduler's own count, to the nanosecond, where the kernel gives it.
    return readdirSync(`/proc/${pid}/task`).reduce(
      (sum, task) =>
        sum +
        Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'latin1').split(' ')[0]) / 1000,
      0
    )
  } catch {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * microsPerTick
  }
}

/** Resident memory of a process and its children, in megabytes (10⁶ bytes). */
export function residentMegabytes(pid: number): number {
  let kilobytes = 0
  for (const id of [pid, ...descendants(pid)]) {
    kilobytes += Number(
      /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, 'latin1'))?.[1] ?? 0
    )
  }
  return (kilobytes * 1024) / 1e6
}

function descendants(pid: number): number[] {
  const found: number[] = []
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    let children = ''
    try {
      children = readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1')
    } catch {
      // A thread that ended meanwhile, or a kernel that does not tell.
    }
    for (const child of children.split(' ').filter(Boolean).map(Number)) {
      found.push(child, ...descendants(child))
    }
  }
  return found
}
