// What stands for the driver: a launch runs a kernel that was compiled for the host.
typedef void (*Kernel)(void*, unsigned);

extern "C" {
long long launches = 0, stream = 0;
unsigned shape[6];

int launch(void* function, unsigned bx, unsigned by, unsigned bz, unsigned tx,
           unsigned ty, unsigned tz, unsigned, void*, void** parameters, void**)
{
    ++launches;
    const unsigned given[] = {bx, by, bz, tx, ty, tz};
    for (int k = 0; k < 6; ++k) shape[k] = given[k];
    ((Kernel)function)(parameters[0], bx);
    return 0;
}

long long current_stream() { return stream; }
}
