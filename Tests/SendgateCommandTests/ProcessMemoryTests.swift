import Foundation
import Glibc
import Testing

@testable import sendgate

@Suite struct ProcessMemoryTests {
    @Test func `nobody can attach to the process or have its memory in a core dump`() async {
        await #expect(processExitsWith: .success) {
            // prctl(2) with a list of arguments of its own is not imported; the kernel takes five numbers.
            typealias Control = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
            let control = try unsafeBitCast(#require(dlsym(nil, "prctl")), to: Control.self)
            let getDumpable: Int32 = 3
            try #require(control(getDumpable, 0, 0, 0, 0) == 1)
            ProcessMemory.keepOutOfFiles()
            #expect(control(getDumpable, 0, 0, 0, 0) == 0)
            var core = rlimit()
            #expect(getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &core) == 0)
            #expect(core.rlim_cur == 0 && core.rlim_max == 0)
        }
    }

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
