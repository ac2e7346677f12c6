/** Canary: a file in no part, which the gate must refuse. */
export const stray = 'stray'
