import Testing

@testable import sendgate

@Suite struct ProcessMemoryTests {
    @Test(arguments: [
        "enable=no", "registers=none,interactive=no", "enable=yes,registers=none,interactive=no,color=no",
    ])
    func `a backtrace without registers and without a prompt may be had`(settings: String) {
        #expect(ProcessMemory.backtraceIsHarmless(settings))
    }

    @Test(arguments: [
        "", "enable=yes", "registers=none", "interactive=no", "registers=all,interactive=no",
        "registers=none,interactive=no,registers=all", "preset=full,registers=none,interactive=no",
        "nonsense",
    ])
    func `any other backtrace may show memory`(settings: String) {
        #expect(!ProcessMemory.backtraceIsHarmless(settings))
    }
}
