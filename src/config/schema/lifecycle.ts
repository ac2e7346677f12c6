/** `drain` and `reload` of `gateway.yaml`: how the process stops, how live config is replaced. */
import { duration, flag, section } from './primitives.ts'

export const drain = section(
  {
    notice: duration({
      default: '5s',
      description:
        'After SIGTERM: how long requests are still taken while `/readyz` says 503, so that load balancers notice.'
    }),
    grace: duration({
      default: '10s',
      description: 'After that: how long requests in flight may take to finish.'
    })
  },
  'How the process stops.'
)

export const reload = section(
  {
    watch: flag({
      default: true,
      description:
        'Whether changes of the config files, and of the users, secret and certificate files that they name, are taken up by themselves. SIGHUP and `console-gateway reload` always are.'
    }),
    settle: duration({
      default: '500ms',
      description:
        'How long the files have to stand still before a change is taken up: nobody wants half a file.'
    }),
    poll: duration({
      default: '10s',
      description:
        'How often the files are looked at, beside the notices of the system, which network file systems do not send.'
    }),
    grace: duration({
      default: '10m',
      description:
        'How long requests that began before a reload (uploads, downloads, event streams) may go on as they began; then they are ended.'
    })
  },
  'How `routes.yaml`, `limits.yaml` and users files are replaced while the gateway runs.'
)
