/** `console` of `gateway.yaml`: the console’s own files. */
import { optional, text } from './primitives.ts'

export const consoleFiles = optional(
  {
    root: text({
      description: 'The folder of the built console, seen from the config folder.',
      examples: ['../console/dist']
    }),
    contentSecurityPolicy: text({
      default: "base-uri 'self'; object-src 'none'; frame-ancestors 'none'",
      description:
        'The `Content-Security-Policy` of its pages. The default breaks no console; tighten it for yours.',
      examples: ["default-src 'self'; frame-ancestors 'none'"]
    })
  },
  'Serve the console’s own files, so that page and gateway share an origin: history fallback, hashed assets cached for good.'
)
