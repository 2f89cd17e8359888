declare const __VERSION__: string

/** Of the SDK; the build puts the package's own in. */
export const version = __VERSION__
