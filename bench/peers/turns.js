/** Loaded into a measured process: tells the longest turn of its event loop since the last signal. */
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delays = monitorEventLoopDelay({ resolution: 2 })
delays.enable()
process.on('SIGWINCH', () => {
  writeFileSync(process.env.TURNS_FILE, String(delays.max / 1e6))
  delays.reset()
})
