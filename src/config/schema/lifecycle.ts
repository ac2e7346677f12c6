/** `drain` and `reload` of `gateway.yaml`: stopping the process, reloading live config. */
import { duration, flag, section } from './primitives.ts'

export const drain = section(
  {
    notice: duration(
      'How long the process still accepts requests after SIGTERM. `/readyz` answers 503 ' +
        'meanwhile, so that load balancers take it out. Make it longer than the health check’s ' +
        'interval. `0s`: it stops accepting at once.',
      { default: '5s', minimum: 0 }
    ),
    grace: duration('How long running requests may then take to finish. `0s`: they are ended.', {
      default: '10s',
      minimum: 0
    })
  },
  'How the process stops after SIGTERM.'
)

export const reload = section(
  {
    watch: flag(
      'Reload automatically when a config file changes, or a users, secret or certificate ' +
        'file that config names: they are looked at every two seconds, and taken once they ' +
        'stay the same. SIGHUP and `console-gateway reload` work in either case.',
      { default: true }
    )
  },
  'How `routes.yaml`, `limits.yaml` and users files are reloaded while the gateway runs.'
)
