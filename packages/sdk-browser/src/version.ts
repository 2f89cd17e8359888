declare const __VERSION__: string | undefined

/** Of the SDK. The build puts the package's own in. */
export const version = typeof __VERSION__ === 'string' ? __VERSION__ : '0.0.0'
