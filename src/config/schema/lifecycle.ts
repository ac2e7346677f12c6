/** `drain` and `reload` of `gateway.yaml`: stopping the process, reloading live config. */
import { duration, flag, section } from './primitives.ts'

export const drain = section(
  {
    notice: duration({
      default: '5s',
      minimum: 0,
      description:
        'How long the process still accepts requests after SIGTERM. `/readyz` answers 503 ' +
        'meanwhile, so that load balancers take it out. Make it longer than the health check’s ' +
        'interval. `0s`: it stops accepting at once.'
    }),
    grace: duration({
      default: '10s',
      minimum: 0,
      description: 'How long running requests may then take to finish. `0s`: they are ended.'
    })
  },
  'How the process stops after SIGTERM.'
)

export const reload = section(
  {
    watch: flag({
      default: true,
      description:
        'Reload automatically when a config file changes, or a users, secret or certificate ' +
        'file that config names. SIGHUP and `console-gateway reload` work in either case.'
    }),
    settle: duration({
      default: '500ms',
      minimum: 0,
      description:
        'How long the files must stay unchanged before they are reloaded. Increase it if a ' +
        'deployment writes the files slowly, so that no incomplete file is read. `0s`: a change ' +
        'is read at once.'
    }),
    poll: duration({
      default: '10s',
      description:
        'How often the files are compared, in addition to notifications of the operating ' +
        'system. Network file systems send no notifications.'
    }),
    grace: duration({
      default: '10m',
      minimum: 0,
      description:
        'How long requests that began before a reload may continue with the old config, such as ' +
        'uploads and event streams. After that they are ended. `0s`: at once.'
    })
  },
  'How `routes.yaml`, `limits.yaml` and users files are reloaded while the gateway runs.'
)
