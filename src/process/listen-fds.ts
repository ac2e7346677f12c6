/** Descriptors of sockets that listen already, by what they are for. */
export interface HeldSockets {
  readonly console?: number
  readonly redirect?: number
  readonly ops?: number
}

const first = 3

/**
 * Takes the sockets of sd_listen_fds(3): the one named `ops` is for the operators' listener,
 * `redirect` for that of plain http, any other for the console. Programs that this process starts
 * must not take them too.
 */
export function takeListenFds(environment = process.env, pid = process.pid): HeldSockets {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = '' } = environment
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete environment[name]
  if (Number(LISTEN_PID) !== pid) return {}
  const names = LISTEN_FDNAMES.split(':')
  return Object.fromEntries(
    Array.from({ length: Number(LISTEN_FDS) || 0 }, (_, index) => {
      const name = names[index] ?? ''
      return [name === 'ops' || name === 'redirect' ? name : 'console', first + index]
    })
  )
}
