/** `console` of `gateway.yaml`: the console’s own files. */
import { optional, text } from './primitives.ts'

export const consoleFiles = optional(
  {
    root: text('The folder with the built console. A relative path starts at the config folder.', {
      examples: ['../console/dist']
    }),
    contentSecurityPolicy: text(
      'The `Content-Security-Policy` header of the console’s pages. The default works with ' +
        'every console; make it stricter if yours allows it.',
      {
        default: "base-uri 'self'; object-src 'none'; frame-ancestors 'none'",
        examples: ["default-src 'self'; frame-ancestors 'none'"]
      }
    )
  },
  'Serves the console’s built files. The page and the API then share one origin, so no CORS ' +
    'setup is needed. Unknown paths get `index.html` (history fallback); hashed assets are ' +
    'cached for a year.'
)
