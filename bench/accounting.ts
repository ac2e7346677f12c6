/** CPU time and memory of a process, read from the kernel. */
import { readdirSync, readFileSync } from 'node:fs'

const read = (file: string) => readFileSync(`/proc/${file}`, 'latin1')

/** CPU time of a process and its threads, user and system, in microseconds: the scheduler's count. */
export const cpuMicros = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .map(task => Number(read(`${pid}/task/${task}/schedstat`).split(' ')[0]) / 1000)
    .reduce((sum, micros) => sum + micros, 0)

/** Resident memory of a process, in megabytes (10⁶ bytes). */
export const residentMegabytes = (pid: number): number =>
  (Number(/VmRSS:\s+(\d+)/.exec(read(`${pid}/status`))?.[1]) * 1024) / 1e6
