import { createPrivateKey, X509Certificate } from 'node:crypto'

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

export const certificateIn = (pem: string) => parsed(() => new X509Certificate(pem))
export const privateKeyIn = (pem: string) => parsed(() => createPrivateKey(pem))
